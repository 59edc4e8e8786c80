import pytest

from cleave.lowering.hardware import (
    FOLDER,
    HardwareError,
    available_hardware,
    hardware_for_arch,
    load_hardware,
    parse_hardware,
)

H200 = (FOLDER / "h200.toml").read_text()


def test_h200_holds_what_was_measured() -> None:
    h200 = load_hardware("h200")
    assert h200 is hardware_for_arch("sm_90a")
    assert h200.capability == (9, 0)
    assert h200.smem_bytes_per_block == 227 * 1024
    assert h200.launch_seconds + h200.next_launch_seconds == pytest.approx(6.6e-6)
    assert h200.instructions >= {"wgmma", "tma"}


def test_floors_of_known_kernels() -> None:
    """Floors given beside the measured times: MatMul 4096^3 and a 32 MB copy."""
    h200 = load_hardware("h200")
    size = 4096
    matmul = h200.floor_seconds(2 * size**3, 3 * size**2 * 2)
    assert matmul * 1e6 == pytest.approx(182, abs=0.5)
    assert h200.floor_seconds(0, 2 * 32e6) * 1e6 == pytest.approx(14.9, abs=0.1)


@pytest.mark.parametrize("name", available_hardware())
def test_every_description_is_consistent(name: str) -> None:
    gpu = load_hardware(name)
    block = gpu.smem_bytes_per_block + gpu.smem_bytes_reserved_per_block
    assert block <= gpu.smem_bytes_per_multiprocessor
    rate = gpu.tensor_flops_per_clock_f16 * gpu.multiprocessors * gpu.clock_hz
    assert 0.6 * rate <= gpu.tensor_flops_f16 <= 1.02 * rate
    assert all(gpu.source(figure) for figure in gpu.sources)
    assert gpu.loaded_clock_hz <= gpu.clock_hz
    assert gpu.l2_latency_seconds < gpu.memory_latency_seconds
    assert len(gpu.sources) == 33


def test_unknown_names_are_told_what_there_is() -> None:
    with pytest.raises(HardwareError, match=r"no hardware description 'h100'; .*h200"):
        load_hardware("h100")
    with pytest.raises(HardwareError, match="for sm_75"):
        hardware_for_arch("sm_75")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('[132, "datasheet"]', '[132, ""]', "x: multiprocessors states no source"),
        ('[132, "datasheet"]', "132", r"x: multiprocessors is not \[value, source\]"),
        ('[132, "datasheet"]', '[13.2, "datasheet"]', "x: multiprocessors is 13.2"),
        ('[132, "datasheet"]', '[0, "datasheet"]', "x: multiprocessors is 0"),
        ("multiprocessors =", "processors =", "x: multiprocessors is missing"),
        ("l2_bytes =", 'l3_bytes = [1, "x"]\nl2_bytes =', "unknown figure l3_bytes"),
        ("arch =", "architecture =", "x: arch is missing"),
        ("[figures]", "[figures", "x: "),
    ],
)
def test_a_malformed_description(old: str, new: str, message: str) -> None:
    text = H200.replace(old, new, 1)
    assert text != H200
    with pytest.raises(HardwareError, match=message):
        parse_hardware(text, "x")

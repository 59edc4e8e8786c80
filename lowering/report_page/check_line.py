"""A numeric check in one line of a report."""

from collections.abc import Mapping

HOW = {
    "numpy-tiles": "in NumPy, tile by tile (not on a GPU)",
    "device": "on the GPU",
}


def check_line(
    method: str,
    sizes: Mapping[str, int],
    error: float,
    allowed: float,
    inputs: object = None,
) -> str:
    """Where a kernel was checked, on what sizes and inputs, and its largest error."""
    named = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    on = f" with {named}" if named else ""
    drawn = "" if inputs is None else f", inputs {inputs}"
    return (
        f"{HOW[method]}{on}{drawn}: relative error {error:.2g} to float64, "
        f"allowed {allowed:.2g}"
    )

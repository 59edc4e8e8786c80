"""Which operands of matmuls a compilation rounds, and which have to be cast first."""

import pytest
from xdsl.utils.exceptions import PassFailedException

from cleave.lowering.compilation.stated_roundings import require_stated_roundings
from cleave.tools.graph_file import parse_graph


def require(inputs: dict[str, str], body: str) -> None:
    """The rule on a graph over square inputs of these element types, by name."""
    arguments = ", ".join(
        f"%{name}: !algebra.tensor<[M, M], {element}>"
        for name, element in inputs.items()
    )
    text = f"""
        algebra.graph @square [M] ({arguments}) -> (!algebra.tensor<[M, M], f16>) {{
          {body}
          algebra.return %o
        }}"""
    require_stated_roundings(parse_graph(text.encode(), "text"))


@pytest.mark.parametrize(
    ("inputs", "body", "message"),
    [
        (
            {"x": "f32", "w": "f16"},
            "%o = algebra.matmul %x, %w",
            "'algebra.matmul' op: lhs %x is !algebra.tensor<[M, M], f32>, but rhs %w "
            "is multiplied as f16, and nothing says that lhs may be rounded: say which "
            "with `algebra.cast`, as in `algebra.cast %x to f16`",
        ),
        (
            {"x": "bf16", "w": "f32"},
            "%t = algebra.transpose %w permutation [1, 0]\n%o = algebra.matmul %x, %t",
            "rhs %t is !algebra.tensor<[M, M], f32>, but lhs %x is multiplied as bf16",
        ),
        (
            {"x": "f32", "w": "f16"},
            "%y = algebra.cast %w to f32\n%o = algebra.matmul %x, %y",
            "lhs %x is !algebra.tensor<[M, M], f32>, but rhs %y is multiplied as f16",
        ),
        (
            {"x": "f32", "w": "f16"},
            "%c = algebra.constant 2.0 : !algebra.tensor<[], f32>\n"
            "%y = algebra.mul %x, %c\n%o = algebra.matmul %y, %w",
            "lhs %y is !algebra.tensor<[M, M], f32>, of f32 inputs alone, but rhs %w",
        ),
        (
            {"x": "f32", "w": "f16"},
            "%y = algebra.relu %x\n%z = algebra.relu %w\n%o = algebra.matmul %y, %z",
            "lhs %y is !algebra.tensor<[M, M], f32>, of f32 inputs alone, but rhs %z",
        ),
        (
            {"x": "bf16", "w": "f16"},
            "%y = algebra.cast %x to f32\n%o = algebra.matmul %y, %w",
            "'algebra.matmul' op: lhs is bf16 but rhs is f16, before casts",
        ),
        (
            {"x": "f32", "w": "f16"},
            "%o = algebra.matmul %x, %w precision tf32",
            "'algebra.matmul' op: precision tf32 is of f32 operands, but rhs is f16",
        ),
    ],
)
def test_what_nobody_said_may_be_rounded_is_refused(
    inputs: dict[str, str], body: str, message: str
) -> None:
    with pytest.raises(PassFailedException) as refused:
        require(inputs, body)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ({"x": "f16", "w": "f16"}, "%o = algebra.matmul %x, %w"),
        (
            {"x": "f32", "w": "f16"},
            "%y = algebra.cast %x to f16\n%o = algebra.matmul %y, %w",
        ),
        (
            {"x": "f32", "w": "f16"},
            "%y = algebra.relu %x\n%z = algebra.cast %y to f16\n"
            "%o = algebra.matmul %z, %w",
        ),
        (
            {"x": "f16", "w": "f16"},
            "%s = algebra.matmul %x, %x\n%p = algebra.exp %s\n"
            "%o = algebra.matmul %p, %w",
        ),
        (
            {"x": "f16", "w": "f16", "bias": "f32", "scale": "f32"},
            "%y = algebra.mul %x, %scale\n%z = algebra.add %y, %bias\n"
            "%o = algebra.matmul %z, %w",
        ),
        ({"x": "f32", "w": "f32"}, "%o = algebra.matmul %x, %w precision tf32"),
        # What nothing rounds is another rule's.
        ({"x": "f32", "w": "f32"}, "%o = algebra.matmul %x, %w"),
    ],
)
def test_what_is_in_f32_of_its_own_accord_may_be_rounded(
    inputs: dict[str, str], body: str
) -> None:
    require(inputs, body)

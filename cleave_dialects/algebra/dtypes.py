"""Element types as NumPy dtypes, and their names in NumPy, PyTorch and TileLang."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

_NAMES: dict[type[Attribute], str] = {
    Float16Type: "float16",
    BFloat16Type: "bfloat16",
    Float32Type: "float32",
    Float64Type: "float64",
}
_BY_NAME: dict[str, Attribute] = {
    "float16": f16,
    "bfloat16": bf16,
    "float32": f32,
    "float64": f64,
    "bool": i1,
    "int32": i32,
    "int64": i64,
}


def dtype_name(element_type: Attribute) -> str:
    """`float16`, `bfloat16`, `float32`, `float64`, `bool`, `int32` or `int64`."""
    if isa(element_type, IntegerType):
        width = element_type.width.data
        return "bool" if width == 1 else f"int{width}"
    return _NAMES[type(element_type)]


def element_type_named(name: str) -> Attribute:
    """The element type of that name; KeyError if there is none."""
    return _BY_NAME[name]


def stored_name(element_type: Attribute) -> str:
    """
    What TileLang is told that elements in memory are: `int8` for a mask, of which it
    has no vectors (0.1.15), else as `dtype_name`.
    """
    name = dtype_name(element_type)
    return "int8" if name == "bool" else name


def element_bytes(element_type: Attribute) -> int:
    """Bytes of one element in memory (a mask takes one)."""
    name = dtype_name(element_type)
    return {"bool": 1, "bfloat16": 2, "float16": 2}.get(name) or int(name[-2:]) // 8


def numpy_dtype(element_type: Attribute) -> Any:
    """The NumPy dtype; bfloat16 comes from ml_dtypes."""
    import numpy as np

    if (name := dtype_name(element_type)) == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)

"""What a closed form is about, for messages."""

from __future__ import annotations

from xdsl.ir import SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.level import value_text
from cleave.dialects.itgraph.parts import tensor_type


class Origin:
    """
    The value that a closed form was read off, its name and dims as text: `%qk
    ('algebra.matmul' op) of [1, BM, BL] over D`. Only what is asked for is worded.
    """

    def __init__(self, value: SSAValue) -> None:
        self.value = value

    def __str__(self) -> str:
        owner = self.value.owner
        words = [value_text(self.value, "a value without a name")]
        if isinstance(owner, Operator):
            words.append(f"('{owner.name}' op)")
        words.append(f"of [{', '.join(map(str, tensor_type(self.value).dims))}]")
        if isinstance(owner, Operator) and owner.REDUCTION is not None:
            words.append(f"over {', '.join(map(str, owner.expression.reduced))}")
        return " ".join(words)

"""
Kernel forms: structurally different kernels for the same itGraph (DESIGN section 9).

A form says which kernels it fits, what there is to choose, what a choice costs, and
writes the TileLang text; `kernel.form` names it in the IR. `cleave.lowering.tilelang.
forms.form` is the interface. A new form is a file here and an entry in `FORMS`.
"""

from __future__ import annotations

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.lowering.tilelang.forms.form import KernelForm
from cleave.lowering.tilelang.forms.persistent import PersistentForm
from cleave.lowering.tilelang.forms.pipelined import PipelinedForm
from cleave.lowering.tilelang.text import EmissionError

FORMS: dict[str, KernelForm] = {
    form.name: form for form in (PipelinedForm(), PersistentForm())
}
"""All forms by name; the first fits every kernel that can be emitted at all."""


def form_named(name: str) -> KernelForm:
    """The form of this name. Raises EmissionError that lists all if there is none."""
    if name not in FORMS:
        raise EmissionError(f"no kernel form '{name}'; there are {', '.join(FORMS)}")
    return FORMS[name]


def form_of(kernel: KernelOp) -> KernelForm:
    """The form that a kernel names. Raises EmissionError for one that is not known."""
    return form_named(kernel.form.data if kernel.form else next(iter(FORMS)))

"""`plan-memory`: where every tile lives, and the copies that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.plan import PlanOp
from cleave.passes.memory.copies import insert_copies
from cleave.passes.memory.layouts import infer_layouts
from cleave.passes.memory.placement import (
    default_specialization,
    default_threads,
    drop_copies_in_place,
    place_kernel,
    require_element_types,
    require_narrow_operands,
    warps_along,
)
from cleave.passes.memory.slices import reload_slices
from cleave.passes.option_ranges import MOST, THREADS, Range

if TYPE_CHECKING:
    from cleave.lowering.hardware import Hardware
    from cleave.lowering.tilelang.forms.form import KernelForm


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """
    Decide SMEM or RMEM for every tile and make the copies between them explicit (paper
    section 6.1 and appendix B).

    * A tile that only inner levels slice stays in GMEM (`gmem`); what a loop uses
      without depending on its iterator is loaded once, where it is constant. A slice
      that may end beyond its tile is loaded from GMEM, which gives zeros there.
    * Matmul results are tensor-core fragments. Elementwise operators carry the fragment
      layout on; at others it stops.
    * Operands of tensor cores are loaded into swizzled SMEM. A computed left operand
      stays in registers if it is a fragment; a computed right one is copied to SMEM.
    * The warpgroups of a kernel divide the rows of its matmuls, or the columns where
      there are fewer than 64 rows for each; then every computed operand goes through
      SMEM. `warps` decides it where sizes have no values yet.
    * A row vector that meets a tile of another layout, or one that another reduction
      decided, is copied through SMEM.
    * A fragment of a narrow type is staged in swizzled SMEM before it is stored.

    `threads`, `stages` and `swizzle` set the kernels' launch: threads of a threadblock
    (by default a warpgroup for each 64 rows of the matmuls, two at most), stages of the
    software pipeline, and the panel width of L2 rasterization (0 for none).
    `specialization` says how TileLang divides warps into those that load and those that
    compute: `single-loop` is its older planner, right for one loop only, `role-based`
    its newer one, `none` neither. `form` names the kernel form
    (`cleave.lowering.tilelang.forms`); a kernel that does not fit it by the hardware
    description of `arch` is refused. Without `layouts`, fragments end at the matmul
    that makes them and all else goes through SMEM (an ablation of the paper).

    Before:
        %s = algebra.matmul %tq, %tk transpose_rhs : !algebra.tensor<[BM, BL], f32>
    After:
        %s = algebra.matmul %tq, %tk transpose_rhs
            : !algebra.tensor<[BM, BL], f32> in rmem<fragment>
    """

    name = "plan-memory"

    threads: Annotated[int | None, THREADS] = None
    stages: Annotated[int, Range(1, MOST)] = 2
    swizzle: Annotated[int, Range(0, MOST)] = 0
    warps: Literal["rows", "columns"] | None = None
    specialization: Literal["single-loop", "role-based", "none"] | None = None
    form: str = "pipelined"
    arch: str = "sm_90a"
    layouts: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        plans = [plan for plan in op.ops if isinstance(plan, PlanOp)]
        for plan in plans:
            require_element_types(plan)
            require_narrow_operands(plan)
        for plan in plans:
            for kernel in list(plan.body.block.ops):
                if isinstance(kernel, KernelOp):
                    self.plan_kernel(kernel)

    def plan_kernel(self, kernel: KernelOp) -> None:
        """Plan one kernel in place."""
        form, hardware = self._form_and_hardware()
        kernel = reload_slices(kernel)
        kernel.form = StringAttr(form.name)
        kernel.threads = IntegerAttr(self.threads or default_threads(kernel), i64)
        kernel.attributes["warps"] = StringAttr(self.warps or warps_along(kernel))
        if "specialization" in form.options(kernel):
            specialization = self.specialization or default_specialization(kernel)
            kernel.attributes["specialization"] = StringAttr(specialization)
        insert_copies(kernel, infer_layouts(kernel, self.layouts))
        place_kernel(kernel, infer_layouts(kernel, self.layouts))
        drop_copies_in_place(kernel)
        kernel.stages = IntegerAttr(self.stages, i64)
        if self.swizzle:
            kernel.swizzle = IntegerAttr(self.swizzle, i64)
        form.place(kernel)
        if (reason := form.fits(kernel, hardware)) is not None:
            raise PassFailedException(
                f"a kernel does not fit form '{form.name}': {reason}"
            )

    def _form_and_hardware(self) -> tuple[KernelForm, Hardware]:
        # The emitter is not loaded before a kernel is planned.
        from cleave.lowering.hardware import HardwareError, hardware_for_arch
        from cleave.lowering.tilelang.forms import form_named
        from cleave.lowering.tilelang.text import EmissionError

        try:
            return form_named(self.form), hardware_for_arch(self.arch)
        except (EmissionError, HardwareError) as error:
            raise PassFailedException(str(error)) from error

"""The passes of Cleave, one file a pass."""

if __name__ != "cleave.passes":
    # A second copy of every op class would make isinstance() and type equality fail
    # without a word, and patterns stop matching.
    raise ImportError(f"import cleave.passes, not {__name__}")

# Each pass by its name on the command line: the module, which is that name in snake
# case, and the `ModulePass` in it.
PASSES: dict[str, tuple[str, str]] = {
    "drop-shifts": ("cleave.passes.drop_shifts", "DropShiftsPass"),
    "infer-reduced-dims": ("cleave.passes.infer_reduced_dims", "InferReducedDimsPass"),
    "symbolize": ("cleave.passes.symbolize", "SymbolizePass"),
    "superoptimize": (
        "cleave.passes.superoptimize.superoptimize",
        "SuperoptimizePass",
    ),
    "specialize": ("cleave.passes.specialize", "SpecializePass"),
    "partition-split": ("cleave.passes.partition_split", "PartitionSplitPass"),
    "partition-reductions": (
        "cleave.passes.partition_reductions",
        "PartitionReductionsPass",
    ),
    "print-degrees": ("cleave.passes.print_degrees", "PrintDegreesPass"),
    "stabilize-exp": ("cleave.passes.stabilize_exp", "StabilizeExpPass"),
    "insert-casts": ("cleave.passes.insert_casts", "InsertCastsPass"),
    "sink-scales": ("cleave.passes.sink_scales", "SinkScalesPass"),
    "expand-vector-products": (
        "cleave.passes.expand_vector_products",
        "ExpandVectorProductsPass",
    ),
    "fold-broadcast": ("cleave.passes.fold_broadcast", "FoldBroadcastPass"),
    "schedule-blocks": ("cleave.passes.schedule_blocks", "ScheduleBlocksPass"),
    "schedule-reductions": (
        "cleave.passes.schedule_reductions",
        "ScheduleReductionsPass",
    ),
    "schedule-masks": ("cleave.passes.schedule_masks", "ScheduleMasksPass"),
    "call-libraries": ("cleave.passes.call_libraries", "CallLibrariesPass"),
    "compose-plans": ("cleave.passes.compose_plans", "ComposePlansPass"),
    "select-schedules": ("cleave.passes.select_schedules", "SelectSchedulesPass"),
    "plan-memory": ("cleave.passes.plan_memory", "PlanMemoryPass"),
    "substitute-facts": ("cleave.passes.substitute_facts", "SubstituteFactsPass"),
}

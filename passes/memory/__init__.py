"""The parts of `plan-memory`: layouts, copies, placement."""

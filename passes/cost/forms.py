"""The kernel forms that are ranked."""

from cleave.passes.cost.form import FormCost
from cleave.passes.cost.persistent import PersistentCost
from cleave.passes.cost.pipelined import PipelinedCost

FORM_COSTS: tuple[FormCost, ...] = (PipelinedCost(), PersistentCost())

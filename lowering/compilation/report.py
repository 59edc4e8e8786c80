"""What a compilation without a search chose, checked and measured, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleave.lowering.compilation.accuracy import NumericCheck
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.search.effort import RULE
from cleave.lowering.search.report import SearchReport, TrialReport


@dataclass(frozen=True, kw_only=True)
class RuleReport(SearchReport):
    """
    A compilation by the rule: what a search reports, and what a configuration is.

    Its trials are the configurations that were rejected, and the one that was not.
    Only this one is predicted, and nothing left out. `sizes` has None for a dim that is
    only known at run time, and then there is no prediction. `kernels` has less of each
    kernel where there is no nvcc. `threads`, `form` and `pipeline` (as `cleave-opt -p`
    takes it) are what came of the configuration, `why` is how it was found.
    """

    configuration: Configuration
    threads: int
    form: str
    pipeline: str
    why: Sequence[str]
    check: NumericCheck

    @property
    def rejected(self) -> list[TrialReport]:
        """The configurations that were not taken, each with a reason."""
        return [trial for trial in self.trials if trial.reason is not None]

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> RuleReport:
        """The report that `json` gave. Raises TypeError or LookupError for others."""
        fields: dict[str, Any] = dict(data)
        fields["trials"] = [TrialReport(**trial) for trial in data["trials"]]
        fields["configuration"] = Configuration(**data["configuration"])
        fields["check"] = NumericCheck.parse(data["check"])
        return cls(**fields)


def parse_report(data: Mapping[str, Any]) -> SearchReport:
    """The report that `json` gave. Raises TypeError or LookupError for others."""
    by_rule = data["effort"] == RULE
    return RuleReport.of_json(data) if by_rule else SearchReport.of_json(data)

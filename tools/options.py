"""The options of passes and targets, as in `schedule-blocks{limit=4}`."""

import dataclasses

from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible
from xdsl.utils.hints import type_repr

from cleave.tools.errors import UsageError, unknown


def check_options(kind: str, cls: type[ArgSpecConvertible], spec: ArgSpec) -> None:
    """
    Raise a `UsageError` that names the option, and those there are, if `spec` does not
    fit the fields of `cls`, which is of the `kind` pass or target.
    """
    options = {
        field.name.replace("_", "-"): type_repr(field.type)
        for field in dataclasses.fields(cls)
        if field.init
    }
    for name in spec.parameters:
        if name.replace("_", "-") not in options:
            raise unknown(f"{kind} '{spec.name}' has no option", name, options)
    try:
        cls.from_spec(spec)
    except ValueError as error:
        known = ", ".join(f"{name}: {type_}" for name, type_ in options.items())
        raise UsageError(f"{kind} '{spec.name}' ({known}): {error}") from error

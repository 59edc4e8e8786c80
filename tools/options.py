"""The options of passes and targets, as in `schedule-blocks{limit=4}`."""

import dataclasses
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from xdsl.utils.arg_spec import (
    ArgSpec,
    ArgSpecConvertible,
    ParameterListType,
    PipelineLexer,
    SpecTokenKind,
    parse_pipeline,
)

from cleave.passes.option_ranges import Range, ranges
from cleave.tools.errors import UsageError, unknown

OptionsT = TypeVar("OptionsT", bound=ArgSpecConvertible)


def specs_in(kind: str, text: str) -> list[ArgSpec]:
    """
    The passes or targets of a text, each with its options.

    Raises UsageError if an option is given twice, of which xDSL takes the last.
    """
    specs = list(parse_pipeline(text))
    for name, options in _options_in(text):
        for position, option in enumerate(options):
            if option in options[:position]:
                raise UsageError(f"{kind} '{name}': option {option} is given twice")
    return specs


def with_options(kind: str, cls: type[OptionsT], spec: ArgSpec) -> OptionsT:
    """
    The pass or target `cls`, whichever the `kind` is, with the options of `spec`.

    Raises UsageError, which names the option and what it takes, where they do not fit.
    """
    types, allowed = get_type_hints(cls), ranges(cls)
    options = [f.name.replace("_", "-") for f in dataclasses.fields(cls) if f.init]
    values: dict[str, ParameterListType] = {}
    for name, given in spec.normalize_parameter_names().parameters.items():
        if (option := name.replace("_", "-")) not in options:
            raise unknown(f"{kind} '{spec.name}' has no option", option, options)
        try:
            values[name] = _values(given, types[name], allowed.get(name))
        except ValueError as error:
            shown = f"is {_text(given)}" if given else "has no value"
            raise UsageError(
                f"{kind} '{spec.name}': option {option} {shown}; it takes {error}"
            ) from None
    try:
        return cls.from_spec(ArgSpec(spec.name, values))
    except ValueError as error:
        raise UsageError(f"{kind} '{spec.name}': {error}") from error


def _options_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """The names of each pass and of its options, as often as they are given."""
    lexer = PipelineLexer(text)
    name, options, previous = "", list[str](), SpecTokenKind.COMMA
    while (token := lexer.lex()).kind is not SpecTokenKind.EOF:
        if token.kind is SpecTokenKind.L_BRACE:
            options = []
        elif token.kind is SpecTokenKind.R_BRACE:
            yield name, options
        elif token.kind is SpecTokenKind.IDENT:
            word = token.span.text
            if previous in (SpecTokenKind.L_BRACE, SpecTokenKind.SPACE):
                options.append(word.replace("_", "-"))
            elif previous is SpecTokenKind.COMMA:
                name = word
        previous = token.kind


def _values(
    given: ParameterListType, type_: Any, range_: Range | None
) -> ParameterListType:
    """
    What an option of a type is given, as that type. Types that no pass of Cleave has
    are left to xDSL.

    Raises ValueError, with what the option takes, for what does not fit.
    """
    if get_origin(type_) in (Union, UnionType):
        members = [member for member in get_args(type_) if member is not NoneType]
        if not given or len(members) > 1:
            return given
        (type_,) = members
    if get_origin(type_) is tuple:
        element, several = get_args(type_)[0], True
    else:
        element, several = type_, False
    if element not in _KINDS and get_origin(element) is not Literal:
        return given
    converted = [_converted(value, element) for value in given]
    fit = given and (several or len(given) == 1) and None not in converted
    if fit and (range_ is None or all(value in range_ for value in converted)):
        return tuple(converted)
    raise ValueError(_wanted(element, several, range_))


_KINDS = {
    bool: ("true or false", "several of true and false"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("a text", "texts"),
}
"""One and several values of each type, in words."""


def _converted(value: Any, element: Any) -> Any:
    """A value as a type, where a whole number is a number as well; None if not."""
    if get_origin(element) is Literal:
        return value if value in get_args(element) else None
    if element is float and type(value) is int:
        return float(value)
    return value if type(value) is element else None


def _wanted(element: Any, several: bool, range_: Range | None) -> str:
    if get_origin(element) is Literal:
        words = " or ".join(map(str, get_args(element)))
    else:
        words = _KINDS[element][several]
    return words if range_ is None else f"{words} {range_}"


def _text(given: ParameterListType) -> str:
    words = (f"'{v}'" if isinstance(v, str) else str(v).lower() for v in given)
    return ", ".join(words)

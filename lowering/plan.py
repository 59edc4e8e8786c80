"""
The launch plan of a generated module: which tensors, which kernels, in which order.

`cleave.lowering.generated` shows the literal that a plan is read from and says what it
means; this file checks it. Nothing here needs TileLang or PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

ShapeDim: TypeAlias = int | str
Requirement: TypeAlias = Literal["wgmma", "tma", "cp_async"]
PassConfig: TypeAlias = bool | int | str

ITEMSIZES: Mapping[str, int] = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "bool": 1,
    "int32": 4,
    "int64": 8,
}
"""Bytes of one element of each dtype that a plan may name."""


class PlanError(ValueError):
    """A plan that cannot be launched as it is written; the message names the part."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An argument, result or temporary of a plan: contiguous, row-major."""

    name: str
    shape: tuple[ShapeDim, ...]
    dtype: str

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """Bytes of the tensor under the given sizes of the dynamic dims."""
        return math.prod(evaluate_shape(self.shape, sizes)) * ITEMSIZES[self.dtype]


@dataclass(frozen=True, slots=True)
class KernelArg:
    """A parameter of a kernel: a tensor by name, under its own shape or as a view."""

    name: str
    view: tuple[ShapeDim, ...] | None = None


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One kernel of a plan: the function that returns its `T.prim_func`."""

    function: str
    args: tuple[KernelArg, ...]
    pass_configs: Mapping[str, PassConfig]
    requires: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """
    A call of a vendor's library: matrices, or stacks of as many, are multiplied.

    `args` are the operands and the result. `transposed` names the operands that are
    held as `[.., k, m]` or `[.., n, k]`.
    """

    library: Literal["matmul"]
    args: tuple[KernelArg, ...]
    transposed: tuple[Literal["lhs", "rhs"], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked plan: each name defined once, each view as large as its tensor."""

    name: str
    args: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]
    temporaries: tuple[TensorSpec, ...]
    launches: tuple[KernelSpec | LibraryCall, ...]
    sizes: Mapping[str, int]

    @property
    def kernels(self) -> tuple[KernelSpec, ...]:
        """The launches that are kernels of the generated module."""
        return tuple(x for x in self.launches if isinstance(x, KernelSpec))

    @property
    def library_calls(self) -> tuple[LibraryCall, ...]:
        """The launches that are none."""
        return tuple(x for x in self.launches if isinstance(x, LibraryCall))

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        """All tensors by name."""
        return {t.name: t for t in (*self.args, *self.results, *self.temporaries)}

    @property
    def dynamic_dims(self) -> tuple[str, ...]:
        """The names of dynamic dims, in the order in which arguments bring them."""
        dims = (dim for spec in self.args for dim in spec.shape)
        names = (dim for dim in dims if isinstance(dim, str) and dim.isidentifier())
        return tuple(dict.fromkeys(names))

    @classmethod
    def parse(cls, literal: object) -> Plan:
        """The plan that a literal says; PlanError names the part that is wrong."""
        fields = _fields(literal, "top level", _FIELDS)
        plan = cls(
            _string(fields["name"], "the name"),
            tuple(_tensor(t, "args") for t in _items(fields["args"], "args")),
            tuple(_tensor(t, "results") for t in _items(fields["results"], "results")),
            tuple(
                _tensor(t, "temporaries")
                for t in _items(fields["temporaries"], "temporaries")
            ),
            tuple(_launch(k) for k in _items(fields["kernels"], "kernels")),
            {
                name: _integer(size, f"size {name}")
                for name, size in _mapping(fields["sizes"], "sizes").items()
            },
        )
        _check(plan)
        return plan

    def literal(self) -> dict[str, Any]:
        """The plan as plain data: `Plan.parse(plan.literal()) == plan`."""

        def tensors(specs: Iterable[TensorSpec]) -> list[dict[str, Any]]:
            return [
                {"name": t.name, "shape": list(t.shape), "dtype": t.dtype}
                for t in specs
            ]

        return {
            "name": self.name,
            "args": tensors(self.args),
            "results": tensors(self.results),
            "temporaries": tensors(self.temporaries),
            "kernels": [_launch_literal(launch) for launch in self.launches],
            "sizes": dict(self.sizes),
        }


_FIELDS = ("name", "args", "results", "temporaries", "kernels", "sizes")
"""The keys of a plan's literal."""


def _launch_literal(launch: KernelSpec | LibraryCall) -> dict[str, Any]:
    args = [
        arg.name if arg.view is None else {"name": arg.name, "shape": list(arg.view)}
        for arg in launch.args
    ]
    if isinstance(launch, LibraryCall):
        return {
            "library": launch.library,
            "args": args,
            "transposed": list(launch.transposed),
        }
    return {
        "function": launch.function,
        "args": args,
        "pass_configs": dict(launch.pass_configs),
        "requires": list(launch.requires),
    }


def evaluate_shape(
    shape: Iterable[ShapeDim], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """The shape in numbers. Raises KeyError for a name that `sizes` lacks."""
    return tuple(d if isinstance(d, int) else _evaluate(d, sizes) for d in shape)


def _evaluate(dim: str, sizes: Mapping[str, int]) -> int:
    if dim.isidentifier():
        return sizes[dim]
    # The door to SymPy, which plans without such dims never open.
    from cleave.dialects.dims import evaluate, parse_dim_text

    return evaluate(parse_dim_text(dim), sizes)


def _names(dim: ShapeDim, where: str) -> frozenset[str]:
    if isinstance(dim, int):
        return frozenset()
    if dim.isidentifier():
        return frozenset({dim})
    from cleave.dialects.dims import DimSyntaxError, names_of, parse_dim_text

    try:
        return names_of(parse_dim_text(dim))
    except DimSyntaxError as error:
        raise PlanError(f"{where}: '{dim}' is no dim: {error}") from None


def _check(plan: Plan) -> None:
    """The rules between the parts of a plan."""
    specs = (*plan.args, *plan.results, *plan.temporaries)
    tensors = plan.tensors
    if len(tensors) < len(specs):
        names = [spec.name for spec in specs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"two tensors are called {twice}")
    known = set(plan.dynamic_dims)
    for spec in specs:
        _check_names(spec.shape, known, spec.name)
    if not plan.results or not plan.launches:
        raise PlanError("a plan has at least one result and one kernel")
    passed: set[str] = set()
    for launch in plan.launches:
        is_call = isinstance(launch, LibraryCall)
        name = launch.library if is_call else launch.function
        for arg in launch.args:
            if arg.name not in tensors:
                raise PlanError(f"{name} takes {arg.name}, no such tensor")
            if arg.view is not None:
                where = f"{name}'s view of {arg.name}"
                _check_names(arg.view, known, where)
                _check_view(tensors[arg.name].shape, arg.view, where)
            passed.add(arg.name)
    for spec in (*plan.results, *plan.temporaries):
        if spec.name not in passed:
            raise PlanError(f"no kernel takes {spec.name}, so nothing writes it")


def _check_names(shape: Iterable[ShapeDim], known: set[str], where: str) -> None:
    for dim in shape:
        if unknown := sorted(_names(dim, where) - known):
            raise PlanError(
                f"{where}: dim '{dim}' names {unknown[0]}, which is no argument's dim"
            )


def _check_view(
    shape: tuple[ShapeDim, ...], view: tuple[ShapeDim, ...], where: str
) -> None:
    """A view holds all elements; where dims are dynamic the runtime's view() checks."""
    if all(isinstance(dim, int) for dim in (*shape, *view)):
        have, want = (math.prod(evaluate_shape(s, {})) for s in (shape, view))
        if have != want:
            raise PlanError(f"{where} has {want} elements, the tensor {have}")


def _tensor(literal: object, where: str) -> TensorSpec:
    fields = _fields(literal, where, TensorSpec.__slots__)
    name = _string(fields["name"], f"a name in {where}")
    dtype = _string(fields["dtype"], f"the dtype of {name}")
    if dtype not in ITEMSIZES:
        raise PlanError(f"{name}: unknown dtype {dtype}; one of {', '.join(ITEMSIZES)}")
    return TensorSpec(name, _shape(fields["shape"], name), dtype)


def _launch(literal: object) -> KernelSpec | LibraryCall:
    if "library" in _mapping(literal, "kernels"):
        return _library_call(literal)
    return _kernel(literal)


def _library_call(literal: object) -> LibraryCall:
    fields = _fields(literal, "kernels", LibraryCall.__slots__)
    library = _string(fields["library"], "a library's function")
    if library != "matmul":
        raise PlanError(f"no library has {library}; there is: matmul")
    args = tuple(_arg(a, library) for a in _items(fields["args"], f"args of {library}"))
    if len(args) != 3:
        raise PlanError(f"{library} takes two operands and a result, not {len(args)}")
    transposed = _items(fields["transposed"], f"transposed of {library}")
    if not set(transposed) <= {"lhs", "rhs"}:
        raise PlanError(f"{library} has operands lhs and rhs, not {transposed}")
    return LibraryCall("matmul", args, tuple(transposed))


def _kernel(literal: object) -> KernelSpec:
    fields = _fields(literal, "kernels", KernelSpec.__slots__)
    function = _string(fields["function"], "a kernel's function")
    configs = _mapping(fields["pass_configs"], f"pass_configs of {function}")
    for key, value in configs.items():
        if not isinstance(value, (bool, int, str)):
            raise PlanError(f"{function}: pass config {key} is {value!r}")
    requires = _items(fields["requires"], f"requires of {function}")
    for family in requires:
        if family not in get_args(Requirement):
            raise PlanError(f"{function} requires {family!r}, no instruction family")
    return KernelSpec(
        function,
        tuple(_arg(a, function) for a in _items(fields["args"], f"args of {function}")),
        cast("Mapping[str, PassConfig]", configs),
        cast("tuple[Requirement, ...]", tuple(requires)),
    )


def _arg(literal: object, function: str) -> KernelArg:
    if isinstance(literal, str):
        return KernelArg(literal)
    fields = _fields(literal, f"args of {function}", ("name", "shape"))
    name = _string(fields["name"], f"an argument of {function}")
    return KernelArg(name, _shape(fields["shape"], f"{function}'s view of {name}"))


def _shape(literal: object, where: str) -> tuple[ShapeDim, ...]:
    shape = _items(literal, f"the shape of {where}")
    for dim in shape:
        valid = dim != "" if isinstance(dim, str) else _is_integer(dim) and dim >= 0
        if not valid:
            raise PlanError(f"{where}: {dim!r} is no dim")
    return cast("tuple[ShapeDim, ...]", tuple(shape))


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PlanError(f"{what} is {value!r}, no integer")
    return value


def _string(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise PlanError(f"{what} is {value!r}, no text")
    return value


def _items(value: object, what: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise PlanError(f"{what}: a list is expected, not {value!r}")
    return list(cast("Iterable[Any]", value))


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PlanError(f"{what}: a dict is expected, not {value!r}")
    mapping = cast("dict[Any, Any]", value)
    for key in mapping:
        _string(key, f"a key of {what}")
    return mapping


def _fields(value: object, what: str, names: Iterable[str]) -> dict[str, Any]:
    """The dict `value`, which has exactly these keys."""
    fields = _mapping(value, what)
    expected = list(names)
    if missing := [name for name in expected if name not in fields]:
        raise PlanError(f"{what}: '{missing[0]}' is missing")
    if extra := [name for name in fields if name not in expected]:
        raise PlanError(f"{what}: unknown key '{extra[0]}'")
    return fields

"""
Generated modules: what the TileLang emitter prints and everything below it consumes.

A generated module is a Python file on disk. It imports `tilelang.language as T`,
defines one function a kernel, and says in a literal `PLAN` how they form one callable:

    import tilelang.language as T

    PLAN = {
        "name": "matmul_rowsum",
        "args": [
            {"name": "x", "shape": ["M", 64], "dtype": "float16"},
            {"name": "w", "shape": [64, 4096], "dtype": "float16"},
        ],
        "results": [{"name": "y", "shape": ["M", 1], "dtype": "float32"}],
        "temporaries": [{"name": "part", "shape": [4, "M"], "dtype": "float32"}],
        "kernels": [
            {
                "function": "kernel_0",
                "args": ["x", "w", "part"],
                "pass_configs": {"tl.enable_fast_math": True},
                "requires": ["wgmma", "tma"],
            },
            {
                "function": "kernel_1",
                "args": ["part", {"name": "y", "shape": ["M"]}],
                "pass_configs": {},
                "requires": [],
            },
        ],
        "sizes": {"N": 4096, "K": 64},
    }


    def kernel_0():
        M = T.dynamic("M")

        @T.prim_func
        def matmul_rowsum_0(
            x: T.Tensor((M, 64), "float16"),
            w: T.Tensor((64, 4096), "float16"),
            part: T.Tensor((4, M), "float32"),
        ):
            ...

        return matmul_rowsum_0

* `args` are the caller's tensors, `results` what the callable returns. Kernels run in
  the order of `kernels` on one stream; a result or temporary is written, then read.
* `temporaries` live in the callable's workspace, between the kernels of one call.
* A dim is an integer, the name of a dynamic dim, or an expression over such names in
  the words of `cleave.dialects.dims`, such as `M ceildiv 64`. Each name stands alone as
  a dim of some argument, which gives its value at a call.
* The `args` of a kernel are the parameters of its `T.prim_func`, in order: a tensor by
  name, or `{"name": ..., "shape": ...}` for its elements viewed under another shape.
* `pass_configs` go to TileLang's PassContext. A function holds one `T.Kernel`, since
  role-based warp specialization does not handle two. `requires` names the instruction
  families ("wgmma", "tma", "cp_async") without which the kernel is not what was
  planned; `cuda.legality` then rejects it.
* In place of a kernel there may be a call of a vendor's library, `{"library": "matmul",
  "args": ["x", "w", "y"], "transposed": ["rhs"]}`: two matrices, or stacks of as many,
  and where their product goes; transposed ones are held as `[k, m]` or `[n, k]`.
* `sizes` records the symbols that were bound when the module was printed.

`PLAN` is read with `ast`, so a plan can be looked at without TileLang.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from cleave.lowering.plan import Plan, PlanError


class GeneratedModuleError(ValueError):
    """A file that is no generated module; the message starts with its path."""


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """A generated module on disk: its plan is read, its kernels are not yet built."""

    path: Path
    text: str
    plan: Plan

    def functions(self) -> dict[str, Callable[[], Any]]:
        """
        Execute the file as a module of its own and give its kernel functions by name.

        TileLang reads the source of a `T.prim_func` back from the file, so the file
        must still be there. Raises GeneratedModuleError for whatever the file raises.
        """
        digest = hashlib.sha256(f"{self.path}\0{self.text}".encode()).hexdigest()
        name = f"cleave_generated_{digest[:16]}"
        module = ModuleType(name)
        module.__file__ = str(self.path)
        # An earlier file of this name may still be in the cache that `inspect` reads.
        linecache.checkcache(str(self.path))
        try:
            # Not imported, which would leave bytecode beside it. This file's `from
            # __future__` is not for it: TileLang finds sizes in annotations by value.
            code = compile(self.text, self.path, "exec", dont_inherit=True)
            exec(code, vars(module))
        except Exception as error:
            raise GeneratedModuleError(
                f"{self.path}: {type(error).__name__}: {error}"
            ) from error
        functions: dict[str, Callable[[], Any]] = {}
        for kernel in self.plan.kernels:
            function = getattr(module, kernel.function, None)
            if not callable(function):
                raise GeneratedModuleError(
                    f"{self.path}: PLAN launches {kernel.function}, no function"
                )
            functions[kernel.function] = function
        return functions


def load_generated(path: Path) -> GeneratedModule:
    """
    Read a generated module from disk without executing it.

    Raises OSError if the file cannot be read, GeneratedModuleError if it does not
    parse, has no PLAN, or has a PLAN that breaks the format above.
    """
    text = path.read_text(encoding="utf-8")
    try:
        statements = ast.parse(text, filename=str(path)).body
    except SyntaxError as error:
        raise GeneratedModuleError(f"{path}:{error.lineno}: {error.msg}") from None
    values = [
        statement.value
        for statement in statements
        if isinstance(statement, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "PLAN" for t in statement.targets)
    ]
    if len(values) != 1:
        raise GeneratedModuleError(f"{path}: PLAN is assigned {len(values)} times")
    try:
        plan = Plan.parse(ast.literal_eval(values[0]))
    except PlanError as error:
        raise GeneratedModuleError(f"{path}: PLAN: {error}") from None
    except (ValueError, TypeError):
        raise GeneratedModuleError(
            f"{path}:{values[0].lineno}: PLAN is not a plain literal"
        ) from None
    return GeneratedModule(path, text, plan)

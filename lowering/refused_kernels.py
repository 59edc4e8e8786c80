"""Kernels that TileLang refuses, so that no other plan that has one is built."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from cleave.lowering.generated import (
    GeneratedModule,
    GeneratedModuleError,
    load_generated,
)

REFUSAL = re.compile(r"TileLang refuses (\w+): ")
"""How `cleave.lowering.cuda.LoweringError` names the kernel."""


class RefusedKernels:
    """What has been refused so far, and why, by the text of the kernels."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def note(self, path: Path, reason: str) -> None:
        """Remember why the generated module at `path` was not built."""
        found = REFUSAL.match(reason)
        if found is None or (module := _loaded(path)) is None:
            return
        for name, text in kernel_texts(module).items():
            if name == found[1]:
                self._reasons[text] = reason[found.end() :]

    def reason(self, path: Path) -> str | None:
        """Why a generated module will not be built either, if one knows."""
        module = _loaded(path) if self._reasons else None
        for name, text in kernel_texts(module).items() if module else ():
            if text in self._reasons:
                return f"TileLang refuses {name}: {self._reasons[text]}"
        return None


def kernel_texts(module: GeneratedModule) -> dict[str, str]:
    """
    What each kernel of a module is, by its function's name: the body with sizes in
    place of their symbols, which plans name anew, and what TileLang is told besides.
    """
    tree = ast.parse(module.text)
    sizes = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    options = {
        kernel.function: sorted(kernel.pass_configs.items())
        for kernel in module.plan.kernels
    }
    bound = _Bound(sizes)
    return {
        function.name: "\n".join(
            [
                repr(options[function.name]),
                *(ast.unparse(bound.visit(line)) for line in function.body),
            ]
        )
        for function in tree.body
        if isinstance(function, ast.FunctionDef) and function.name in options
    }


class _Bound(ast.NodeTransformer):
    """Sizes in place of symbols."""

    def __init__(self, sizes: dict[str, ast.Constant]) -> None:
        self.sizes = sizes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.sizes.get(node.id, node)


def _loaded(path: Path) -> GeneratedModule | None:
    try:
        return load_generated(path)
    except (GeneratedModuleError, OSError):
        return None

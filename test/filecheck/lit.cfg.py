"""Run the tools of this checkout with the interpreter that runs lit."""
# ruff: noqa: F821

import os
import shlex
import sys

import lit.formats

config.name = "cleave"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, ".lit")

# lit's own workers fill the cores.
config.environment["OMP_NUM_THREADS"] = "1"
config.environment["UPDATE_GOLDEN"] = os.environ.get("UPDATE_GOLDEN", "")
config.environment["PYTHONPATH"] = os.path.dirname(
    os.path.dirname(config.test_source_root)
)

config.substitutions += [
    ("%examples", os.path.join(config.test_source_root, "../../examples")),
    (
        r"(?<![\w./-])golden(?![\w./-])",
        f"{shlex.quote(sys.executable)} {config.test_source_root}/golden.py",
    ),
]

# Through every printer and parser there is, and what comes out is checked.
config.substitutions += [
    (
        "XDSL_ROUNDTRIP",
        "cleave-opt %s --split-input-file"
        " | cleave-opt --split-input-file --print-op-generic"
        " | cleave-opt --split-input-file | filecheck %s",
    ),
    (
        "XDSL_GENERIC_ROUNDTRIP",
        "cleave-opt %s --split-input-file --print-op-generic"
        " | cleave-opt --split-input-file --print-op-generic"
        " | filecheck %s --check-prefix=CHECK-GENERIC",
    ),
]

# These see the two above spelled out. A path may hold the name of a tool: only the word
# that stands alone is one.
for tool, module in {
    "cleave-opt": "cleave.tools.opt",
    "cleave": "cleave.tools.main",
    "filecheck": "filecheck",
}.items():
    config.substitutions.append(
        (
            rf"(?<![\w./-]){tool}(?![\w./-])",
            f"{shlex.quote(sys.executable)} -m {module}",
        )
    )

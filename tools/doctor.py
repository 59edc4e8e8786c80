"""`cleave doctor`: what is installed here, and what works with it."""

import argparse
import dataclasses
import json

from cleave.tools.survey import Survey, survey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Return 0 if the parts of Cleave that need no GPU and no CUDA work, else 1."""
    found = survey()
    print(as_json(found) if args.json else as_text(found))
    return 1 if found.parts()[0].missing else 0


def as_json(found: Survey) -> str:
    """
    The fields of `Survey`, and in `parts` what each part of Cleave lacks: an empty list
    if it works.
    """
    parts = {part.name: part.missing for part in found.parts()}
    return json.dumps(dataclasses.asdict(found) | {"parts": parts}, indent=2)


def as_text(found: Survey) -> str:
    """The same for people: one line a thing, then one line a part."""
    rows = [("cleave", found.cleave), ("Python", f"{found.python} on {found.system}")]
    for package in found.packages:
        state = package.version or "not installed"
        if package.problem:
            state += f", which does not load: {package.problem}"
        rows.append((package.name, state))
    for gpu in found.gpus:
        architecture = "sm_" + "".join(map(str, gpu.capability))
        rows.append(("GPU", f"{gpu.name}, {architecture}, {gpu.memory_gib:.0f} GiB"))
    if not found.gpus:
        rows.append(("GPU", "none"))
    nvcc = found.nvcc
    rows.append(("nvcc", f"{nvcc.version}, {nvcc.path}" if nvcc else "none"))
    rows.append(("", ""))
    for part in found.parts():
        needs = f": needs {', '.join(part.missing)}" if part.missing else ""
        rows.append(("no" if needs else "yes", part.name + needs))
    return "\n".join(f"{name:14}{state}".rstrip() for name, state in rows)

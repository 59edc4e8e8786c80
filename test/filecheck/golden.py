"""
Compare standard input with a golden file: `... | golden FILE`.

With UPDATE_GOLDEN in the environment (`UPDATE_GOLDEN=1 lit test/filecheck/targets`) the
file is written instead, to be read in the diff of the commit.
"""

import difflib
import os
import sys
from pathlib import Path


def main() -> int:
    file, text = Path(sys.argv[1]), sys.stdin.read()
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
        return 0
    golden = file.read_text() if file.exists() else ""
    if text and text == golden:
        return 0
    lines = (golden.splitlines(keepends=True), text.splitlines(keepends=True))
    sys.stdout.writelines(difflib.unified_diff(*lines, str(file), "standard input"))
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""The side of `cleave.lowering.worker` that works: requests in, answers out."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from cleave.lowering.worker import NOTE

Note: TypeAlias = Callable[[str], object]
Answer: TypeAlias = Callable[[dict[str, Any], Note], dict[str, Any]]
"""A function of a request, and of a function that is told what is being done."""

LAST = "last"
"""An entry of an answer after which the process ends."""
SET_PARENT_DEATH_SIGNAL = 1
"""The option of Linux's prctl."""


def serve(answer: Answer) -> int:
    """
    Answer what standard input asks, until it ends, or an answer is said to be the last.

    Whatever else writes to standard output is sent to standard error.
    """
    with contextlib.suppress(OSError, AttributeError):
        # End with the process above, even in the midst of a request.
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(line: dict[str, Any]) -> None:
        output.write(json.dumps(line) + "\n")
        output.flush()

    for line in sys.stdin:
        answered = answer(json.loads(line), lambda note: write({NOTE: note}))
        write(answered)
        if answered.get(LAST):
            break
    return 0

"""How a peer of the benchmark is driven: a process that answers JSON lines, one step each.

1. A peer is an object with a method per step; the request is `{"step": name, ...arguments}`.
2. A step times itself with `timed`, so that what is only checking does not count. Its answer holds `seconds`
   (a list, one per repetition) and may hold `check` (values on which all peers must agree).
3. Everything a peer prints goes to stderr; answers travel on the original stdout.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where the inputs of a run lie and where a peer may write; `settings` are added to a peer's Spark session."""

    data: Path
    work: Path
    memory: str
    cores: int
    settings: dict[str, str] = field(default_factory=dict)

    def file(self, name: str) -> str:
        return str(self.data / f"{name}.parquet")

    def table(self, name: str) -> str:
        return str(self.work / name)


def timed(action: Callable[[], Any], repeat: int = 1) -> tuple[list[float], Any]:
    """Seconds of each repetition and the last result."""
    seconds, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return seconds, result


def serve(make: Callable[[Inputs], Any]) -> None:
    """Runs the steps asked for on stdin until it ends; `make` builds the peer."""
    answers = _own_stdout()
    settings = dict(setting.split("=", 1) for setting in sys.argv[5:])
    inputs = Inputs(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), settings)
    peer = make(inputs)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": True, **getattr(peer, request.pop("step"))(**request)}
        except Exception as error:
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:600]}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()
    peer.close()


def _own_stdout() -> TextIO:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers

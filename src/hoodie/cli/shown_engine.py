"""An engine that says on the terminal what it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hoodie.cli.printing import Step
from hoodie.engine import Engine, Work

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class ShownEngine:
    """Runs tasks on `inner` and shows the label of the work that is under way."""

    inner: Engine
    step: Step

    @property
    def parallelism(self) -> int:
        return self.inner.parallelism

    @property
    def runs_tasks_once(self) -> bool:
        return self.inner.runs_tasks_once

    @property
    def driver_host(self) -> str | None:
        return self.inner.driver_host

    def run(self, work: Work[T, R], tasks: Sequence[T], label: str) -> list[R]:
        self.step.update(f"{label} ({len(tasks)} tasks)" if len(tasks) > 1 else label)
        return self.inner.run(work, tasks, label)

"""Peak resident memory of a process tree while something runs, by kind of process."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass

import psutil

INTERVAL_S = 0.2


@dataclass(slots=True)
class Peaks:
    """Highest values seen, in MiB; pages that forked workers share are counted in each."""

    total: int = 0
    driver: int = 0
    jvm: int = 0
    workers: int = 0
    largest_worker: int = 0

    def see(self, total: int, driver: int, jvm: int, workers: int, largest_worker: int) -> None:
        """Raises each value that was exceeded."""
        self.total, self.driver = max(self.total, total), max(self.driver, driver)
        self.jvm, self.workers = max(self.jvm, jvm), max(self.workers, workers)
        self.largest_worker = max(self.largest_worker, largest_worker)


class MemoryWatch:
    """Samples the tree below `pid` until it is left; the peaks are in `peaks`."""

    def __init__(self, pid: int) -> None:
        self.peaks = Peaks()
        self._root = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def as_dict(self) -> dict[str, int]:
        return asdict(self.peaks)

    def _watch(self) -> None:
        while True:
            self._sample()
            if self._done.wait(INTERVAL_S):
                return

    def _sample(self) -> None:
        driver = _resident(self._root)
        jvm, workers = 0, [0]
        try:
            children = self._root.children(recursive=True)
        except psutil.Error:
            return
        for child in children:
            match _program(child):
                case "java":
                    jvm += _resident(child)
                case "python":
                    workers.append(_resident(child))
        self.peaks.see(driver + jvm + sum(workers), driver, jvm, sum(workers), max(workers))


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss / 2**20)
    except psutil.Error:
        return 0


def _program(process: psutil.Process) -> str:
    """`java`, `python` or nothing: a child that a JVM has just forked still carries its pages and must not count."""
    try:
        name = process.name()
    except psutil.Error:
        return ""
    return next((known for known in ("java", "python") if name.startswith(known)), "")

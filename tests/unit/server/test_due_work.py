"""Work that is due is done, also where there can be no more threads, and whatever work before it does."""

from __future__ import annotations

import threading

import pytest

from hoodie.env import SystemEnv
from hoodie.server.due_work import DueWork


def test_work_is_done_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started, begin = [0], threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started[0] += 1
        if started[0] > 1:  # the one that waits
            raise RuntimeError("can't start new thread")
        begin(thread)

    due, env, done = DueWork(SystemEnv()), SystemEnv(), [threading.Event() for _ in range(2)]
    monkeypatch.setattr(threading.Thread, "start", start)
    try:
        due.add(env.monotonic(), lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        for one in done:
            due.add(env.monotonic(), one.set)
            assert one.wait(10)
    finally:
        due.close()

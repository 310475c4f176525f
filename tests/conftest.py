"""Which tests are long: the cases that a sample of a test leaves to `make test-more`.

`HOODIE_MORE_EVERY=n` lets that run one in about n of these cases, another n-th for each `HOODIE_MORE_TURN` (a number):
`.ci/run` takes its turn from the commit. Without it all run.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

MORE_EVERY = int(os.environ.get("HOODIE_MORE_EVERY", "1"))
MORE_TURN = int(os.environ.get("HOODIE_MORE_TURN", "0"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    not_now = set()
    for case in _left_to_more(items):
        case.add_marker(pytest.mark.long)
        if crc32(case.nodeid.encode()[::-1]) % MORE_EVERY != MORE_TURN % MORE_EVERY:
            not_now.add(case.nodeid)
    if not_now:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in not_now])
        items[:] = [item for item in items if item.nodeid not in not_now]


def pytest_collection_finish() -> None:
    """Twenty thousand tests need not be looked at by each garbage collection."""
    gc.collect()
    gc.freeze()


def _left_to_more(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Of each test marked `sampled(every)` the cases that are not in its sample; the sample depends on names alone."""
    tests: dict[tuple[Path, object, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            test = (item.path, getattr(item, "cls", None), getattr(item, "originalname", item.name))
            tests.setdefault(test, []).append(item)
    for cases in tests.values():
        ranked = sorted(cases, key=lambda case: crc32(case.nodeid.encode()))
        marker = cases[0].get_closest_marker("sampled")
        assert marker is not None
        yield from ranked[-(-len(cases) // marker.args[0]) :]

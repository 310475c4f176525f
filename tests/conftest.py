"""Which tests are long: the cases that a sample of a test leaves to `make test-more`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for case in _left_to_more(items):
        case.add_marker(pytest.mark.long)


def _left_to_more(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Of each test marked `sampled(every)` the cases that are not in its sample; the sample depends on names alone."""
    tests: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            tests.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for cases in tests.values():
        ranked = sorted(cases, key=lambda case: crc32(case.nodeid.encode()))
        marker = cases[0].get_closest_marker("sampled")
        assert marker is not None
        yield from ranked[-(-len(cases) // marker.args[0]) :]

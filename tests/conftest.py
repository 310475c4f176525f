"""Which tests are deep, and which are long: the cases that a sample of a test leaves to `make test-more`.

Deep are those marked so, all below the folders in `DEEP`, and of those on Spark all but the ones marked `first`:
`make test` leaves them to `make test-deep` and `make test-spark`.

`HOODIE_MORE_EVERY=n` lets that run one in about n of these cases, another n-th for each `HOODIE_MORE_TURN` (a number),
and of tests marked `long(turns=m)` one in m: `.ci/run` takes its turn from the commit. Without it all run.

With `HOODIE_TEST_STRATEGY` (a storage strategy, see `hoodie.testing.lake`) only tests of modules that make lakes run,
one in about `HOODIE_STRATEGY_EVERY` of them, by the same turns. Those marked `own_folder` are skipped with the reason
they give. So are those that turn the metadata table off, which such a table cannot do without, and those that copy a
table, or count or stop the calls of one storage: tests/state does so with those of both. With `HOODIE_TEST_BUCKETS`,
too, files lie in two buckets of an S3 server, each of which opens to an access key of its own alone.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from hoodie.layout import FederatedStorage
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import PLACES

DEEP = ("bench", "contract", "fuzz", "golden", "state")
STRATEGY = os.environ.get("HOODIE_TEST_STRATEGY", "")
IN_BUCKETS = bool(os.environ.get("HOODIE_TEST_BUCKETS"))
NOT_FOR_STRATEGIES = {
    "needs its metadata table": "it turns the metadata table off",
    "which is not allowed: nothing was read": "it copies a table, whose storage paths the copy may not use",
}
STRATEGY_EVERY = int(os.environ.get("HOODIE_STRATEGY_EVERY", "1"))
MORE_EVERY = int(os.environ.get("HOODIE_MORE_EVERY", "1"))
MORE_TURN = int(os.environ.get("HOODIE_MORE_TURN", "0"))


def pytest_configure() -> None:
    if STRATEGY:
        counting = CountingStorage.__init__

        def of_one(self: CountingStorage, inner: Storage, *given: Any, **more: Any) -> None:
            if isinstance(inner, FederatedStorage):
                pytest.skip("it counts calls of one storage")
            counting(self, inner, *given, **more)

        CountingStorage.__init__ = of_one  # type: ignore[method-assign]


@pytest.fixture(scope="session", autouse=True)
def buckets() -> Iterator[None]:
    """Two buckets of an S3 server, each with an access key of its own, in which lakes have their files where asked."""
    if not (STRATEGY and IN_BUCKETS):
        yield
        return
    from hoodie.testing.closed_buckets import closed_buckets  # noqa: PLC0415 - loads boto3
    from hoodie.testing.s3_server import running_s3_server  # noqa: PLC0415 - as above

    with running_s3_server() as server, closed_buckets(server) as closed:
        PLACES["hoodie.storage.path"] = ",".join(f"s3a://{closed.new_bucket()}/{{lake}}" for _ in range(2))
        PLACES.update(closed.credentials())
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        is_later = item.get_closest_marker("spark") and not item.get_closest_marker("first")
        if is_later or item.path.relative_to(Path(__file__).parent).parts[0] in DEEP:
            item.add_marker(pytest.mark.deep)
    not_now = set()
    for case in _left_to_more(items):
        case.add_marker(pytest.mark.long)
        if crc32(case.nodeid.encode()[::-1]) % MORE_EVERY != MORE_TURN % MORE_EVERY:
            not_now.add(case.nodeid)
    if MORE_EVERY > 1:
        not_now |= {item.nodeid for item in items if not _is_its_turn(item)}
    if STRATEGY:
        not_now |= {item.nodeid for item in items if not _is_for_strategies(item)}
        for item in items:
            if own := item.get_closest_marker("own_folder"):
                item.add_marker(pytest.mark.skip(reason=own.args[0]))
    if not_now:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in not_now])
        items[:] = [item for item in items if item.nodeid not in not_now]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    try:
        return (yield)
    except Exception as error:
        for words, why in NOT_FOR_STRATEGIES.items():
            if STRATEGY and words in str(error):
                pytest.skip(why)
        raise


def pytest_collection_finish() -> None:
    """Twenty thousand tests need not be looked at by each garbage collection."""
    gc.collect()
    gc.freeze()


def _is_for_strategies(item: pytest.Item) -> bool:
    """Whether a test is run with a storage strategy now: it makes lakes, and its turn has come."""
    makes_lakes = {"Lake", "logged_lake"} & vars(getattr(item, "module", object)).keys()
    its_turn = crc32(item.nodeid.encode()) % STRATEGY_EVERY == MORE_TURN % STRATEGY_EVERY
    return bool(makes_lakes) and its_turn


def _is_its_turn(item: pytest.Item) -> bool:
    """Whether a long test that says in how many changes it runs once (`long(turns=4)`) runs in this one."""
    marker = item.get_closest_marker("long")
    turns = 1 if marker is None else marker.kwargs.get("turns", 1)
    return crc32(item.nodeid.encode()) % turns == MORE_TURN % turns


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

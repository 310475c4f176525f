"""Golden timelines for the timeline tests."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie.spec import V6, V8, V9, FormatProfile
from hoodie.storage import MemoryStorage
from hoodie.testing.golden_timelines import GoldenTimeline, unpack_small

GOLDEN = Path(__file__).parents[2] / "golden" / "spec"


@pytest.fixture(scope="session")
def small_timelines(tmp_path_factory) -> dict[str, GoldenTimeline]:
    return unpack_small(GOLDEN / "timelines.tar.xz", tmp_path_factory.mktemp("timelines"))


@pytest.fixture
def storage() -> Iterator[MemoryStorage]:
    memory = MemoryStorage(uuid.uuid4().hex)
    yield memory
    memory.forget()


@pytest.fixture(params=[V6, V8, V9], ids=["v6", "v8", "v9"])
def profile(request) -> FormatProfile:
    return request.param

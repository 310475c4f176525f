"""Golden timelines for the timeline tests."""

from pathlib import Path

import pytest

from hoodie.testing.golden_timelines import GoldenTimeline, unpack_small

GOLDEN = Path(__file__).parents[2] / "golden" / "spec"


@pytest.fixture(scope="session")
def small_timelines(tmp_path_factory) -> dict[str, GoldenTimeline]:
    return unpack_small(GOLDEN / "timelines.tar.xz", tmp_path_factory.mktemp("timelines"))

"""Which markers a write gets by its options."""

from __future__ import annotations

import logging
import uuid

import pytest

from hoodie.config import resolve
from hoodie.remote.server_markers import ServerMarkers
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import batching_of
from hoodie.storage import MemoryStorage
from hoodie.timeline import DirectMarkers
from hoodie.timeline.marker_lists import ListedMarkers
from hoodie.transaction import markers_for
from hoodie.transaction.marking import LONGEST_S

INSTANT = "20260101000000000"
TYPE = "hoodie.write.markers.type"
VIEW = "hoodie.filesystem.view"


class Hdfs(MemoryStorage):
    @property
    def scheme(self) -> str:
        return "hdfs"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, DirectMarkers),
        ({TYPE: "DIRECT", f"{VIEW}.type": "REMOTE_FIRST"}, DirectMarkers),
        ({TYPE: "TIMELINE_SERVER_BASED"}, DirectMarkers),
        ({TYPE: "TIMELINE_SERVER_BASED", f"{VIEW}.type": "MEMORY"}, DirectMarkers),
        ({TYPE: "TIMELINE_SERVER_BASED", f"{VIEW}.type": "REMOTE_FIRST"}, ServerMarkers),
        ({TYPE: "TIMELINE_SERVER_BASED", f"{VIEW}.type": "REMOTE_ONLY"}, ServerMarkers),
        ({TYPE: "PROCESS_LISTS"}, ListedMarkers),
        ({TYPE: "PROCESS_LISTS", f"{VIEW}.type": "REMOTE_ONLY"}, ListedMarkers),
    ],
)
def test_the_type_and_a_server_decide(options: dict[str, str], kind: type) -> None:
    assert type(markers_for(MemoryStorage(uuid.uuid4().hex), INSTANT, resolve(options))) is kind


def test_a_server_is_asked_by_the_keys_of_hudi_and_has_no_time_to_hang() -> None:
    options = {
        TYPE: "TIMELINE_SERVER_BASED",
        f"{VIEW}.type": "REMOTE_FIRST",
        f"{VIEW}.remote.host": "h",
        f"{VIEW}.remote.port": "7",
        f"{VIEW}.remote.timeout.secs": "300",
        f"{VIEW}.remote.retry.enable": "true",
        f"{VIEW}.remote.retry.max_numbers": "5",
    }
    made = markers_for(MemoryStorage(uuid.uuid4().hex), INSTANT, resolve(options))
    assert isinstance(made, ServerMarkers)
    assert (made.address.text, made.address.timeout_s, made.retries.times) == ("h:7", LONGEST_S, 5)


def test_on_hdfs_markers_are_direct_and_one_warning_says_why(caplog: pytest.LogCaptureFixture) -> None:
    config = resolve({TYPE: "TIMELINE_SERVER_BASED", f"{VIEW}.type": "REMOTE_FIRST"})
    for _ in range(2):
        assert isinstance(markers_for(Hdfs(uuid.uuid4().hex), INSTANT, config), DirectMarkers)
    assert [one.levelno for one in caplog.records if "HDFS" in one.getMessage()] == [logging.WARNING]


def test_batches_are_those_of_the_keys_of_hudi() -> None:
    assert batching_of(resolve({})) == Batching(20, 0.05)
    key = "hoodie.markers.timeline_server_based.batch"
    assert batching_of(resolve({f"{key}.num_threads": 3, f"{key}.interval_ms": 7})) == Batching(3, 0.007)

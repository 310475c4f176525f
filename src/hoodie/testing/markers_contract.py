"""What every kind of markers must do. Test modules subclass it with a fixture `storage`, and say how they are made."""

from __future__ import annotations

import pickle

import pytest

from hoodie.errors import Conflict
from hoodie.spec import Marker, MarkerKind
from hoodie.storage import Storage
from hoodie.timeline import Markers

INSTANT = "20260101000000000"


class MarkersContract:
    """Subclass it with a fixture `storage`: an empty storage, and with `make_markers`."""

    def make_markers(self, storage: Storage, instant: str) -> Markers:
        raise NotImplementedError

    def test_what_was_created_is_loaded_in_the_order_of_paths(self, storage: Storage) -> None:
        markers = self.make_markers(storage, INSTANT)
        assert markers.load() is None
        markers.create("q/b.parquet", MarkerKind.MERGE)
        pickle.loads(pickle.dumps(markers)).create("p/a.parquet", MarkerKind.CREATE)
        assert markers.load() == (Marker("p/a.parquet", MarkerKind.CREATE), Marker("q/b.parquet", MarkerKind.MERGE))

    def test_a_marker_is_made_once(self, storage: Storage) -> None:
        markers = self.make_markers(storage, INSTANT)
        markers.create("p/a.parquet", MarkerKind.CREATE)
        with pytest.raises(Conflict):
            markers.create("p/a.parquet", MarkerKind.CREATE)

    def test_writes_do_not_see_each_others_markers_and_drop_only_their_own(self, storage: Storage) -> None:
        markers, others = (self.make_markers(storage, instant) for instant in (INSTANT, INSTANT[:-1] + "1"))
        markers.create("p/a.parquet", MarkerKind.CREATE)
        others.create("p/b.parquet", MarkerKind.CREATE)
        markers.drop()
        assert markers.load() is None
        assert others.load() == (Marker("p/b.parquet", MarkerKind.CREATE),)
        markers.drop()

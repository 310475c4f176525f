"""Fixtures of the compat tests: the real Hudi 1.2.0 and 0.15.0, hudi-rs, and the golden tables."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "scripts")]

from peers import Peer, Readers, hudi_peer, hudi_rs_peer  # noqa: E402 (found through the line above)
from peers.s3_peer import NoS3, s3_peer  # noqa: E402 (as above)

from hoodie.testing.s3_server import S3Server, s3_bucket, s3_server  # noqa: E402

__all__ = ["s3_bucket", "s3_server"]

COMPAT_PYTHON = Path(os.environ.get("HOODIE_COMPAT_PYTHON", ROOT / ".venv-compat" / "bin" / "python"))


EVERY = int(os.environ.get("HOODIE_COMPAT_EVERY", "8"))
"""Of the cases of a test in `THINNED` one in so many runs; 1 is all of them (`make compat-all`)."""
TURN = int(os.environ.get("HOODIE_MORE_TURN", "0"))
"""Which of them: other ones for another number. `.ci/run` takes it from the commit."""
THINNED = {
    "test_after_kills.py",
    "test_bootstrapped_in_turns.py",
    "test_bucket_index.py",
    "test_change_data_in_turns.py",
    "test_clean_archive.py",
    "test_clustering_in_turns.py",
    "test_compaction_in_turns.py",
    "test_failed_writes.py",
    "test_hbase_index.py",
    "test_metadata_indexes.py",
    "test_metadata_writer.py",
    "test_mor_writes.py",
    "test_record_index_in_turns.py",
    "test_several_writers_with_hudi.py",
    "test_undo.py",
    "test_upgrades.py",
}
"""Tests that take turns with a peer for many steps: each of their cases takes ten seconds and more."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.compat)
    left_out = {id(item) for item in _left_out(items)}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
        items[:] = [item for item in items if id(item) not in left_out]


def _left_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The cases that a sample leaves out: of each test every `EVERY`-th stays, another one of each test and turn."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.path.name in THINNED and HERE in item.path.parents:
            cases.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for (_, name), found in cases.items():
        first = (len(name) + TURN) % min(EVERY, len(found))
        yield from (item for place, item in enumerate(found) if place % EVERY != first)


@pytest.fixture(scope="session")
def compat_python() -> Path:
    """The interpreter of the compat environment."""
    if not COMPAT_PYTHON.exists():
        pytest.fail(f"no compat environment at {COMPAT_PYTHON}: run `make compat-setup` (or `make test-compat`)")
    return COMPAT_PYTHON


@pytest.fixture(scope="session")
def hudi_12(compat_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """The real Hudi 1.2.0."""
    peer = hudi_peer(compat_python, "1.2.0", tmp_path_factory.mktemp("hudi_12"))
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def hudi_on_s3(compat_python: Path, tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Peer]:
    """Hudi 1.2.0 on the S3 server of the tests."""
    try:
        jars = compat_python.parent.parent / "s3"
        peer = s3_peer(compat_python, jars, tmp_path_factory.mktemp("hudi_on_s3"), s3_server)
    except NoS3 as reason:
        pytest.skip(str(reason))
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def hudi_015(compat_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """The real Hudi 0.15.0, which knows table version 6."""
    peer = hudi_peer(compat_python, "0.15.0", tmp_path_factory.mktemp("hudi_015"))
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def hudi_rs(compat_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """The hudi-rs reader."""
    peer = hudi_rs_peer(compat_python, tmp_path_factory.mktemp("hudi_rs"))
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def readers(hudi_12: Peer, hudi_015: Peer, hudi_rs: Peer) -> Readers:
    """All peers; each starts when it is first asked."""
    return Readers(hudi_12, hudi_015, hudi_rs)


@pytest.fixture
def golden(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """`golden("1.2.0/cow_part")` → (a fresh copy of the table, its expected rows); skips where it is not carried.

    With `replay=True` the inputs of its steps are needed, too; the project's own selection leaves them out.
    """

    def unpack(name: str, *, replay: bool = False) -> tuple[Path, Path]:
        for folder in golden_folders():
            archive = folder / name / "table.tar.gz"
            if archive.exists() and (not replay or any((archive.parent / "expected").glob("input_*.parquet"))):
                with tarfile.open(archive) as tar:
                    tar.extractall(tmp_path / "golden", filter="data")
                return tmp_path / "golden" / Path(name).name, archive.parent / "expected"
        pytest.skip(f"golden table {name} is neither in HOODIE_GOLDEN_DIR nor in tests/golden")

    return unpack


def golden_folders() -> list[Path]:
    """Where golden tables may lie: the full set of HOODIE_GOLDEN_DIR, then the project's own selection."""
    full = os.environ.get("HOODIE_GOLDEN_DIR")
    return [
        *([(ROOT / full).resolve()] if full else []),
        ROOT / "tests" / "golden",
        ROOT / "tests" / "golden" / "tables",
    ]

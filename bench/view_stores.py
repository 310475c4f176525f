"""What the stores of a timeline service's views cost: memory, look-ups through HTTP, all files to one client, and
following a commit.

`python -m bench.view_stores [--files 1000000] [--kind memory ...]` prints one line of JSON for each store, each
measured in a process of its own. The store is fed with made-up files, a hundred in each partition; the commits that are
followed are real ones, of a file in each of a thousand of them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import psutil

from hoodie.config import resolve
from hoodie.remote import Connection, ServerAddress
from hoodie.remote.files_arrow import FileColumns, parse_files
from hoodie.remote.known_timeline import told as known_instants
from hoodie.server import Service, http
from hoodie.server.kept_view import KeptView, synced
from hoodie.server.routes import VIEW
from hoodie.server.stores.choice import ROCKS_PATH, SPILL_FOLDER, TYPE, stores_of
from hoodie.server.stores.packed import PackedFiles, pack
from hoodie.server.stores.store import Edit
from hoodie.state.handle import load_handle, timeline_of
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, row

KINDS = {"memory": "MEMORY", "disk": "SPILLABLE_DISK", "rocksdb": "EMBEDDED_KV_STORE"}
IN_PARTITION = 100
TOUCHED = 1000
ASKED = 1000
WHOLE = 5
FOLLOWED = 5


def measure(kind: str, files: int, results: multiprocessing.Queue[dict[str, object]]) -> None:
    folder = Path(tempfile.mkdtemp())
    (folder / "spill").mkdir()
    lake = Lake(uri=str(folder / "lake"), options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a", part=_name(0)))
    stores = stores_of(resolve({TYPE: KINDS[kind], SPILL_FOLDER: str(folder / "spill"), ROCKS_PATH: str(folder / "r")}))
    service = Service([str(folder)], stores=stores)
    asking = _Asking(service, lake)
    asking.ask(_name(0))
    before = psutil.Process().memory_info().rss
    (table,) = service._tables.values()
    view = table.view
    assert view is not None
    table.view, fed_s = _timed(lambda: _fed(view, files))
    held = psutil.Process().memory_info().rss
    asking.connection.close()  # the service has hung up on it meanwhile
    times = [asking.ask(_name(1 + turn * 37 % (files // IN_PARTITION))) for turn in range(ASKED)]
    asked = psutil.Process().memory_info().rss
    whole = [asking.ask_all() for _ in range(WHOLE)]
    told = len(asking.told())
    syncs = []
    for turn in range(FOLLOWED):
        syncs.append(_follow(lake, table.view, turn))
        table.view = syncs[-1].view
    counted = syncs[-1].storage
    listed = [call.path for call in counted.calls if call.op in ("list", "list_dir")]
    results.put(
        {
            "store": kind,
            "files": files,
            "bytes a slice": round((held - before) / files),
            "MiB before, fed, asked": [round(size / (1 << 20)) for size in (before, held, asked)],
            "fed in s": round(fed_s, 1),
            "look-up ms p50, p99": [_ms(statistics.median(times)), _ms(sorted(times)[int(ASKED * 0.99)])],
            "all as Arrow": {
                "partitions": told,
                "seconds p50": round(statistics.median(wall for wall, _ in whole), 3),
                "processor seconds p50, of server and client": round(statistics.median(cpu for _, cpu in whole), 3),
            },
            "sync ms p50, processor ms p50": [
                _ms(statistics.median(one.seconds for one in syncs)),
                _ms(statistics.median(one.processor_seconds for one in syncs)),
            ],
            "storage calls of the sync": len(counted.calls),
            "folders listed": listed,
            "partitions kept": len(table.view.loaded()),
        }
    )


@dataclass(frozen=True, slots=True)
class _Sync:
    """A view taken to the next commit, and what that took. `storage`: counted."""

    view: KeptView
    seconds: float
    processor_seconds: float
    storage: CountingStorage


def _follow(lake: Lake, view: KeptView, turn: int) -> _Sync:
    """Commits a file into each of a thousand partitions, then takes a view there."""
    lake.upsert(*(row(f"k{turn}-{number}", part=_name(1 + number)) for number in range(TOUCHED)))
    counted = CountingStorage(lake.storage)
    cpu = time.process_time()
    now, seconds = _timed(lambda: synced(view, load_handle(counted, Awake())))
    return _Sync(now, seconds, time.process_time() - cpu, counted)


def _fed(view: KeptView, files: int) -> KeptView:
    instant = view.timeline.instants[-1].requested
    store, many = view.store, 200
    names = [_name(1 + number) for number in range(files // IN_PARTITION)]
    for begin in range(0, len(names), many):
        store = store.changed(Edit(loaded={name: _made_up(instant) for name in names[begin : begin + many]}))
    return replace(view, store=store, paths=frozenset({_name(0), *names}))


def _made_up(instant: str) -> PackedFiles:
    names = (f"{uuid.uuid4()}-0_{number}-12-345_{instant}.parquet" for number in range(IN_PARTITION))
    return pack((name, 435_000) for name in names)


class _Asking:
    """A client of a service that listens in this process, as Hudi asks."""

    def __init__(self, service: Service, lake: Lake) -> None:
        listening = http.Listening(port=0)
        place = http.bound_socket(listening)
        server = http.server_of(service, listening)
        threading.Thread(target=lambda: server.run(sockets=[place]), daemon=True).start()
        port = place.getsockname()[1]
        self.connection = HTTPConnection("127.0.0.1", port)
        self.streams = Connection(ServerAddress("127.0.0.1", port))
        self.known = {"basepath": lake.table.uri, **known_instants(timeline_of(lake.handle()))}

    def ask(self, partition: str) -> float:
        began = time.perf_counter()
        target = f"{VIEW}slices/partition/latest/?{urlencode({**self.known, 'partition': partition})}"
        self.connection.request("GET", target)
        answer = self.connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - began
        assert answer.status == 200, body
        return took

    def told(self) -> dict[str, FileColumns]:
        body = self.streams.ask_files("files/all", self.known)
        assert body is not None
        return parse_files(body)

    def ask_all(self) -> tuple[float, float]:
        began, cpu = time.perf_counter(), time.process_time()
        self.told()
        return time.perf_counter() - began, time.process_time() - cpu


def _name(number: int) -> str:
    return f"day{number:06}"


def _timed(work: Callable[[], KeptView]) -> tuple[KeptView, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=list(KINDS))
    said = parser.parse_args()
    for kind in said.kind:
        context = multiprocessing.get_context("spawn")
        results: multiprocessing.Queue[dict[str, object]] = context.Queue()
        process = context.Process(target=measure, args=(kind, said.files, results))
        process.start()
        print(json.dumps(results.get(timeout=900)), flush=True)
        process.join()


if __name__ == "__main__":
    main()

"""What questions to a timeline server cost: ours with each of its stores, beside the real server of Hudi 1.2.0.

    python bench/timeline_server.py [--files 100000] [--rounds 5] [--into build/bench/results-timeline-server.json]

All servers run in processes of their own on this machine, and are asked over one kept connection about one table on its
disk: empty files, a hundred in each partition, all of one commit. Rounds alternate between servers. What a server spent
of the processor is said beside the clock, which is others', too. Steps: the newest slices of one partition, asked for
the first time and again, all slices to one client (an Arrow stream by ours, JSON by Hudi's), the first question after a
commit that touched so many files, and markers that are made durable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil

from hoodie.remote.files_arrow import MEDIA_TYPE, parse_files
from hoodie.remote.known_timeline import told
from hoodie.state.handle import timeline_of
from hoodie.testing.lake import Lake, row

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "compat"), str(ROOT / "bench")]

from markers import INSTANT, asked  # noqa: E402 - found by the line above
from peers.process import timeline_server_peer  # noqa: E402 - as above

VIEW, SLICES = "/v1/hoodie/view/", 100
STORES = {"memory": "hoodie, in memory", "disk": "hoodie, on disk", "rocksdb": "hoodie, RocksDB"}
HUDI = "Hudi 1.2.0"
ASKED, WHOLE = 200, 3


@dataclass(frozen=True)
class Server:
    """A server that runs, and the process whose processor time is its own."""

    title: str
    port: int
    process: psutil.Process

    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)


@dataclass(frozen=True)
class Table:
    """The table that is asked about."""

    lake: Lake
    partitions: int
    touched: int

    def known(self, **more: str) -> str:
        handle = self.lake.handle()
        about = {"basepath": self.lake.table.uri, **told(timeline_of(handle), handle.config)}
        return urllib.parse.urlencode({**about, **more})

    def touch(self) -> None:
        """A commit of a new file in each of so many partitions."""
        self.lake.write("bulk_insert", [row(f"k{n}-{uuid.uuid4()}", part=_name(n)) for n in range(self.touched)])


def made(folder: Path, files: int, touched: int) -> Table:
    """A table of so many empty files, which its first commit has made."""
    lake = Lake(uri=str(folder / "t"), options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a", part=_name(0)))
    instant = timeline_of(lake.handle()).instants[-1].requested
    metafile = (folder / "t" / _name(0) / ".hoodie_partition_metadata").read_bytes()
    for number in range(1, files // SLICES):
        partition = folder / "t" / _name(number)
        partition.mkdir()
        (partition / ".hoodie_partition_metadata").write_bytes(metafile)
        for one in range(SLICES):
            (partition / f"{uuid.uuid4()}-0_{one}-12-345_{instant}.parquet").touch()
    return Table(lake, files // SLICES, touched)


def _name(number: int) -> str:
    return f"day{number:06}"


@contextmanager
def ours(root: Path, store: str, *more: str) -> Iterator[Server]:
    """`hoodie serve` with a store."""
    keys = ("hoodie.filesystem.view.spillable.dir", "hoodie.filesystem.view.rocksdb.base.path")
    places = [part for key in keys for part in ("-o", f"{key}={root}/{store}-store")]
    command = [sys.executable, "-m", "hoodie.cli", "serve", "--root", str(root), "--port", "0"]
    (root / f"{store}-store").mkdir(exist_ok=True)
    with subprocess.Popen([*command, "--view-store", store, *places, *more], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        port = int(run.stdout.readline().rsplit(":", 1)[1])
        try:
            yield Server(STORES[store], port, psutil.Process(run.pid))
        finally:
            run.terminate()


@contextmanager
def theirs(root: Path, **options: bool) -> Iterator[Server]:
    """The server of the real Hudi, started from its bundle."""
    peer = timeline_server_peer(ROOT / ".venv-compat" / "bin" / "python", "1.2.0", root / "theirs")
    try:
        port = int(peer.ask("start", metadata=False, **options)["port"])
        (jvm,) = [
            one for one in psutil.Process().children(recursive=True) if one.name() == "java" and _listens(one, port)
        ]
        yield Server(HUDI, port, jvm)
    finally:
        peer.stop()


def _listens(process: psutil.Process, port: int) -> bool:
    return any(one.laddr.port == port for one in process.net_connections() if one.status == psutil.CONN_LISTEN)


class Client:
    """One kept connection to a server."""

    def __init__(self, server: Server, table: Table) -> None:
        self.server, self.table = server, table
        self._http = HTTPConnection("127.0.0.1", server.port, timeout=600)

    def look_up(self, partition: str, known: str) -> bytes:
        """Its newest slices."""
        return self.ask("GET", "slices/partition/latest/", f"{known}&partition={partition}")

    def all_slices(self, known: str) -> int:
        """All of the table; of how many files they are."""
        if self.server.title == HUDI:
            body = self.ask("GET", "slices/all/beforeoron/latest/", f"{known}&maxinstant=99991231235959999")
            return sum(map(len, json.loads(body).values()))
        body = self.ask("GET", "files/all/", known, MEDIA_TYPE)
        return sum(len(files.names) for files in parse_files(body).values())

    def ask(self, method: str, path: str, query: str, accepts: str = "application/json") -> bytes:
        self._http.request(method, f"{VIEW}{path}?{query}", headers={"Accept": accepts, "Content-Length": "0"})
        answer = self._http.getresponse()
        body = answer.read()
        assert answer.status == 200, (self.server.title, path, answer.status, body[:500])
        return body


def measured(server: Server, work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of the server's processor time."""
    cpu, began = server.cpu_s(), time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000, (server.cpu_s() - cpu) * 1000


def views(table: Table, root: Path, rounds: int) -> list[dict[str, Any]]:
    """Look-ups, all slices and syncs of all servers in turns."""
    with ExitStack() as running:
        servers = [running.enter_context(ours(root, store)) for store in STORES]
        servers.append(running.enter_context(theirs(root, incremental=True)))
        clients = [Client(server, table) for server in servers]
        half = table.partitions // 2
        names = [_name(1 + turn * 37 % half) for turn in range(ASKED)]
        known = table.known()
        for client in clients:
            client.ask("POST", "loadallpartitions/", known)
            assert client.all_slices(known) >= table.partitions * SLICES - SLICES, client.server.title
            assert len(json.loads(client.look_up(names[0], known))) == SLICES
            for name in names:  # what its virtual machine compiles first
                client.look_up(name, known)
        others = [_name(number) for number in range(1 + half, table.partitions)]
        looked: dict[str, list[tuple[float, float]]] = {one.title: [] for one in servers}
        first: dict[str, list[tuple[float, float]]] = {one.title: [] for one in servers}
        whole: dict[str, list[tuple[float, float]]] = {one.title: [] for one in servers}
        synced: dict[str, list[tuple[float, float]]] = {one.title: [] for one in servers}
        spent = dict.fromkeys(looked, 0.0)
        for turn in range(rounds):
            for client in clients:
                asked = others[turn::rounds]  # each for the first time
                first[client.server.title] += [
                    measured(client.server, partial(client.look_up, name, known)) for name in asked
                ]
            for client in clients:
                title, before = client.server.title, client.server.cpu_s()
                looked[title] += [measured(client.server, partial(client.look_up, name, known)) for name in names]
                spent[title] += client.server.cpu_s() - before
        for _ in range(WHOLE):
            for client in clients:
                whole[client.server.title].append(measured(client.server, partial(client.all_slices, known)))
        for _ in range(rounds):
            table.touch()
            known = table.known()
            for client in clients:
                synced[client.server.title].append(measured(client.server, partial(client.look_up, _name(1), known)))
    return [
        {
            "server": title,
            "first_look_up_ms": _median(first[title], 0),
            "look_up_ms": _median(looked[title], 0),
            "look_up_p99_ms": round(sorted(one for one, _ in looked[title])[len(looked[title]) * 99 // 100], 2),
            "look_up_cpu_ms": round(spent[title] * 1000 / len(looked[title]), 2),
            "whole_ms": _median(whole[title], 0),
            "whole_cpu_ms": _median(whole[title], 1),
            "sync_ms": _median(synced[title], 0),
            "sync_cpu_ms": _median(synced[title], 1),
        }
        for title in looked
    ]


def _median(found: list[tuple[float, float]], which: int) -> float:
    return round(statistics.median(one[which] for one in found), 2)


def markers(root: Path, rounds: int, seconds: float, connections: int) -> list[dict[str, Any]]:
    """How many markers a second are made durable by our server and by that of Hudi, in turns."""
    rates: dict[str, list[tuple[float, float, float]]] = {}
    with ours(root, "memory", "--markers") as own, theirs(root, markers=True) as other:
        for turn in range(rounds + 1):
            for which, server in enumerate((own, other)):
                # A write of its own for each: a marker that is there already is answered otherwise.
                instant = str(int(INSTANT) + 2 * turn + which)
                folder = urllib.parse.quote(f"{root}/t/.hoodie/.temp/{instant}", safe="")
                asyncio.run(asked(server.port, folder, 2, 1, first=connections))
                cpu = server.cpu_s()
                took = sorted(asyncio.run(asked(server.port, folder, seconds, connections)))
                spent = server.cpu_s() - cpu
                assert took, server.title
                if turn:  # the first one warms it
                    found = rates.setdefault("hoodie" if server is own else HUDI, [])
                    found.append((len(took) / seconds, took[len(took) // 2] * 1000, len(took) / spent))
    names = ("a_second", "p50_ms", "a_second_of_processor")
    return [
        {
            "server": title,
            **{name: round(statistics.median(one[at] for one in found)) for at, name in enumerate(names)},
        }
        for title, found in rates.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--touched", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    # Each waits for one batch of 50 ms: 240 of them get at most 4 800 markers in a second, whatever the server can do.
    parser.add_argument("--connections", type=int, default=480)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "bench" / "results-timeline-server.json")
    said = parser.parse_args()
    started, load = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        table = made(root, said.files, min(said.touched, said.files // SLICES))
        found = {
            "timeline_server": {
                "started": started,
                "files": said.files,
                "touched": table.touched,
                "rounds": said.rounds,
                "connections": said.connections,
                "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
                "views": views(table, root, said.rounds),
                "markers": markers(root, said.rounds, said.seconds, said.connections),
                "load": [round(load, 1), round(os.getloadavg()[0], 1)],
            }
        }
    said.into.parent.mkdir(parents=True, exist_ok=True)
    said.into.write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

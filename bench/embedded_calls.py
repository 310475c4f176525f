"""What a warm commit asks of an object store, beside Hudi 1.2.0: both with a timeline server in their own process.

    python -m bench.embedded_calls [--files 100 2000] [--commits 3]

1. The store is moto, behind a proxy that counts requests (as in `far_store`, without its delay).
2. A table has so many base files of one byte in ten partitions, which nobody opens. Each commit inserts a row into each
   partition, as a new file; services are off. The last commit counts: what can be warm is.
3. A request that reads is one that wants to know something (GET, HEAD, a listing); all others write. Hudi deletes its
   markers and its leftovers one by one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hoodie.engine import LocalEngine
from hoodie.server.embedded import stop_embedded
from hoodie.spec import BaseFileName, CommitMetadata, WriteStat
from hoodie.state.handle import load_handle
from hoodie.storage import open_storage
from hoodie.table import Table
from hoodie.testing.fault_proxy import FaultProxy, running_fault_proxy
from hoodie.testing.lake import Awake, Lake, row
from hoodie.testing.s3_server import running_s3_server
from hoodie.timeline import complete, create_requested, load_commit_metadata, new_instant_time, to_inflight

from .far_store import _settings

ROOT = Path(__file__).resolve().parents[1]
PARTITIONS = [f"p{number}" for number in range(10)]
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "lake",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "part",
    WRITE + "precombine.field": "ts",
    WRITE + "operation": "insert",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "1",  # none is small, which only their sizes tell
    "hoodie.metadata.enable": "false",
}


def make_table(uri: str, store: Mapping[str, str], files: int) -> Lake:
    """A table of ten rows and so many files of one byte, which a commit names."""
    lake = Lake(options={**OPTIONS, **store}, uri=uri)
    lake.write("insert", [row("a", part=partition) for partition in PARTITIONS])
    storage = open_storage(uri, store)
    handle = load_handle(storage, Awake())
    (first,) = lake.table.timeline().completed()
    instant = new_instant_time(handle.env, handle.config.timezone, lake.table.timeline().last_time())
    stats: dict[str, list[WriteStat]] = {}
    for number in range(files):
        partition = PARTITIONS[number % len(PARTITIONS)]
        name = BaseFileName(f"f{number:07d}-0000-0000-0000-000000000000-0", "0-1-2", instant)
        stat = WriteStat(name.file_id, f"{partition}/{name.text}", partition_path=partition, file_size_bytes=1)
        stats.setdefault(partition, []).append(stat)
    paths = [str(stat.path) for some in stats.values() for stat in some]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: storage.put(path, b"x"), paths))
    written = load_commit_metadata(storage, handle.profile, first)
    metadata = CommitMetadata(
        {name: tuple(some) for name, some in stats.items()},
        extra_metadata=written.extra_metadata,
        operation_type=written.operation_type,
    )
    requested = create_requested(storage, handle.profile, instant, "commit", b"")
    inflight = to_inflight(storage, handle.profile, requested, b"")
    payload = handle.profile.commit_codec.encode(metadata, "commit")
    complete(storage, handle.profile, inflight, payload, handle.env, handle.config.timezone)
    return lake


def requests_of(proxy: FaultProxy) -> dict[str, int]:
    """Requests since the proxy was told to begin, by what they are."""
    kinds = Counter("LIST" if _is_listing(one.method, one.path) else one.method for one in proxy.requests)
    reading = sum(kinds[kind] for kind in ("GET", "HEAD", "LIST"))
    return {"requests": len(proxy.requests), "reading": reading, **dict(sorted(kinds.items()))}


def _is_listing(method: str, path: str) -> bool:
    return method == "GET" and ("list-type" in path or "prefix=" in path)


@contextmanager
def hudi(settings: Mapping[str, str]) -> Iterator[Any]:
    """Runs steps of `bench/peers/hudi.py`."""
    python = ROOT / ".venv-compat" / "bin" / "python"
    session = [f"{name}={value}" for name, value in settings.items()]
    with tempfile.TemporaryDirectory() as work:
        program = [str(python), str(ROOT / "bench/peers/hudi.py"), work, work, "2g", "2", *session]
        process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=work)
        assert process.stdin is not None
        assert process.stdout is not None

        def step(name: str, **arguments: Any) -> None:
            print(json.dumps({"step": name, **arguments}), file=process.stdin, flush=True)
            answer = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            assert answer["ok"], answer

        yield step
        process.stdin.close()
        process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 2000])
    parser.add_argument("--commits", type=int, default=3)
    asked = parser.parse_args()
    with (
        running_s3_server() as server,
        running_fault_proxy(server.endpoint) as proxy,
        hudi(_settings(server, proxy)) as step,
    ):
        bucket, store = server.new_bucket(), {**server.options, "aws_endpoint": proxy.endpoint}
        for files in asked.files:
            place = f"{bucket}/files_{files}"
            lake = make_table(f"s3://{place}", store, files)
            handle = load_handle(open_storage(lake.uri, store), Awake())
            table = Table(handle, {**lake.options, "hoodie.embed.timeline.server": "true"}, LocalEngine(2))
            for turn in range(asked.commits):
                proxy.begin(None)
                table.insert(lake._data([row(f"{turn}", part=partition) for partition in PARTITIONS]))
            print(json.dumps({"who": "ours", "files": files, **requests_of(proxy)}), flush=True)
            stop_embedded()
            for turn in range(asked.commits):
                proxy.begin(None)
                step("insert_small", table=f"s3a://{place}", turn=turn, options=OPTIONS)
            print(json.dumps({"who": "Hudi 1.2.0", "files": files, **requests_of(proxy)}), flush=True)


if __name__ == "__main__":
    main()

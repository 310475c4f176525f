"""Records what the timeline server of the real Hudi answers about golden tables, for tests that need no JVM.

    python tests/compat/record_timeline_server.py COMPAT_PYTHON 1.2.0/cow_part ...

Writes `tests/golden/timeline_server/<release>/<scenario>.json.gz`: a list of [path, parameters, status, answer], with
`{base}` for the base path of the table.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from peers.process import timeline_server_peer

from hoodie.testing.golden import GoldenTable
from hoodie.testing.view_requests import Request, view_requests

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
RECORDED = Path(os.environ.get("HOODIE_RECORD_INTO", GOLDEN / "timeline_server"))
VIEW = "/v1/hoodie/view/"


def ask(port: int, base: Path, request: Request) -> tuple[int, Any]:
    """Status and JSON of one answer, without the check of timelines; the text of an error is left out."""
    path, asked = request
    query = urllib.parse.urlencode({**asked, "basepath": str(base), "refreshoff": "true"})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{VIEW}{path}?{query}") as answer:
            return answer.status, json.loads(answer.read().decode().replace(str(base), "{base}"))
    except urllib.error.HTTPError as error:
        return error.code, None


def record(port: int, name: str) -> int:
    """How many requests were recorded for a golden table."""
    golden = Path(os.environ.get("HOODIE_GOLDEN_DIR", GOLDEN / "tables"))
    with tempfile.TemporaryDirectory() as folder:
        base = GoldenTable(golden / name).unpack(Path(folder))
        lines = [[*request, *ask(port, base, request)] for request in view_requests(base)]
    into = RECORDED / f"{name}.json.gz"
    into.parent.mkdir(parents=True, exist_ok=True)
    text = "[\n" + ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n]\n"
    into.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return len(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        peer = timeline_server_peer(Path(sys.argv[1]), "1.2.0", Path(scratch))
        listening = int(peer.ask("start")["port"])
        for table in sys.argv[2:]:
            print(table, record(listening, table), flush=True)
        peer.stop()

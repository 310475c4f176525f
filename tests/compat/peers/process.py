"""`Peer`: one long-lived server process of the compat environment, spoken to in JSON lines.

1. A peer starts on its first job and lives until `stop`; every process is ended by its own id.
2. A peer that died in a job raises `PeerFailed` with the end of its log, and the next job starts a new one.
3. Rows cross as parquet files in the peer's own scratch folder.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent


class PeerFailed(AssertionError):
    """The peer answered with an error; `causes` are its messages, outermost first."""

    def __init__(self, peer: str, job: str, causes: list[str]) -> None:
        super().__init__(f"{peer} could not {job}: " + " <- ".join(causes))
        self.causes = causes


class Peer:
    """A server process and the parquet files exchanged with it."""

    def __init__(self, name: str, command: list[str], scratch: Path) -> None:
        self.name = name
        self._command = command
        self._scratch = scratch
        self._numbers = itertools.count()
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] | None = None

    def read(self, path: Path | str, query: str = "snapshot", **arguments: Any) -> pa.Table:
        """All rows of a query, in no particular order.

        Raises:
            PeerFailed: the peer could not read the table.
        """
        out = self._file("rows")
        self.ask("read", path=str(path), query=query, out=str(out), **arguments)
        rows = pq.ParquetFile(out).read()
        out.unlink()
        return rows

    def write(
        self,
        path: Path | str,
        op: str,
        rows: pa.Table,
        options: dict[str, str] | None = None,
        mode: str = "append",
    ) -> dict[str, Any]:
        """Runs one write of the peer; an existing table is continued with its own properties."""
        source = self._file("input")
        pq.write_table(rows, source)
        return self.ask("write", path=str(path), op=op, input=str(source), options=options or {}, mode=mode)

    def ask(self, job: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one job.

        Raises:
            PeerFailed: the peer answered with an error, or died.
        """
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"job": job, **arguments}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.stop()
            raise PeerFailed(self.name, job, [f"process died: {self._log_tail()}"])
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise PeerFailed(self.name, job, answer["error"])
        return answer

    def stop(self) -> None:
        """Ends the process (and with it the JVM, which watches the pipe)."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        try:
            process.stdin.close()
            process.wait(timeout=30)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            process.kill()
            process.wait()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._log = (self._scratch / "server.log").open("ab")
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                cwd=self._scratch,
            )
        return self._process

    def _log_tail(self) -> str:
        return (self._scratch / "server.log").read_bytes()[-600:].decode(errors="replace")

    def _file(self, kind: str) -> Path:
        self._scratch.mkdir(parents=True, exist_ok=True)
        return self._scratch / f"{kind}_{next(self._numbers)}.parquet"


def hudi_peer(python: Path, version: str, scratch: Path, jars: Sequence[Path] = ()) -> Peer:
    """The real Hudi of `version` in the environment of `python`, with more jars."""
    return Peer(f"Hudi {version}", [str(python), str(HERE / "hudi_server.py"), version, *map(str, jars)], scratch)


def hudi_rs_peer(python: Path, scratch: Path) -> Peer:
    """The hudi-rs reader in the environment of `python`."""
    return Peer("hudi-rs", [str(python), str(HERE / "hudi_rs_server.py")], scratch)


def timeline_server_peer(python: Path, version: str, scratch: Path) -> Peer:
    """Timeline servers of the real Hudi of `version`, in a JVM without Spark."""
    command = [str(python), str(HERE / "timeline_server.py"), version]
    return Peer(f"the timeline server of Hudi {version}", command, scratch)

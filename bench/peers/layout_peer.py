"""Appending and laying out: the steps of all Spark peers, in terms of what a subclass says of its format.

1. *Events*: rows that arrive in the order of time, with a session each that is as good as random. They are
   loaded once, then small batches are appended.
2. *Small files*: the same rows in many files. They are clustered by session, and by session and visitor on two curves,
   each time from a copy of the small files. One session is asked for before and after.
3. *Sorted*: lineitem in the order of its only key, of which rows of the newest tenth are changed.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from protocol import timed
from spark_peer import SparkPeer

TARGET_BYTES = 32 << 20
QUERIES = 5
ORDERS = {"sort": ("session",), "zorder": ("session", "visitor"), "hilbert": ("session", "visitor")}


class LayoutPeer(SparkPeer):
    """What is done to events and to lineitem in order."""

    def load_events(self, source: Any, table: str, files: int | None = None) -> None:
        """Makes the table of events, in so many files or in as many as the format likes."""
        raise NotImplementedError

    def append(self, source: Any, table: str) -> None:
        """Adds events."""
        raise NotImplementedError

    def load_sorted(self, source: Any, table: str) -> None:
        """Makes the table of lineitem in the order of its key `line_key`, without partitions."""
        raise NotImplementedError

    def merge_sorted(self, source: Any, table: str) -> None:
        """Changes rows of it."""
        raise NotImplementedError

    def cluster(self, table: str, order: str, columns: tuple[str, ...]) -> None:
        """Rewrites small files into those of 32 MiB: `order` is sort, zorder or hilbert."""
        raise NotImplementedError

    def small_files(self, files: int) -> str:
        """A folder with events in so many files, made by this peer."""
        table = self.inputs.table("small_files")
        if not Path(table).exists():
            self.load_events(self._input("events"), table, files)
        return table

    def appends(self, repeat: int) -> dict[str, Any]:
        """Batches of a megabyte, one after the other, into a large table; also how many bytes of files that wrote for
        each byte of a batch that is alone in a file.
        """
        table = self.inputs.table("events")
        self.load_events(self._input("events"), table)
        loaded = self.frame(table).count()
        known, seconds, written, alone = set(self._data_files(table)), [], 0, 0
        for turn in range(repeat):
            batch = f"event_batch_{turn % 10}"
            source = self._input(batch)
            seconds += timed(lambda source=source: self.append(source, table))[0]
            new = set(self._data_files(table)) - known
            known |= new
            written += sum(file.stat().st_size for file in new)
            alone += Path(self.inputs.file(batch)).stat().st_size
        rows = self.frame(table).count() - loaded
        return {"seconds": seconds, "check": {"appended": rows}, "written_per_byte": round(written / alone, 2)}

    def load_in_order(self) -> dict[str, Any]:
        table = self.inputs.table("sorted")
        seconds, _ = timed(lambda: self.load_sorted(self._input("sorted"), table))
        return {"seconds": seconds}

    def upsert_newest(self, change: str) -> dict[str, Any]:
        """Changes of rows in the newest tenth of the keys."""
        table = self.inputs.table("sorted")
        seconds, _ = timed(lambda: self.merge_sorted(self._input(change), table))
        row = self.frame(table).selectExpr("count(*)", "sum(change_seq)").first()
        return {"seconds": seconds, "check": {"changed": [int(value) for value in row]}}

    def lay_out(self, order: str, files: int) -> dict[str, Any]:
        """Clustering of small files, plan included."""
        table = self.inputs.table(f"laid_{order}")
        shutil.copytree(self.small_files(files), table)
        seconds, _ = timed(lambda: self.cluster(table, order, ORDERS[order]))
        left = len(self.files(table))
        if left > files // 2:
            raise AssertionError(f"{left} of {files} files are left after clustering")
        row = self.frame(table).selectExpr("count(*)", "sum(visitor)", "max(started)").first()
        return {"seconds": seconds, "check": {"rows": [int(value) for value in row]}, "files": left}

    def one_session(self, session: str, files: int, order: str = "") -> dict[str, Any]:
        """The events of one session; of how many rows, of all, Spark's scan gave to the filter."""
        table = self.inputs.table(f"laid_{order}") if order else self.small_files(files)
        seconds, found, read = [], [], 0
        for _ in range(QUERIES):
            frame = self.frame(table).where(f"session = '{session}'").select("id")
            taken, rows = timed(frame.collect)
            seconds += taken
            found = sorted(row[0] for row in rows)
            read = self._rows_read(frame)
        return {"seconds": seconds[1:], "check": {"found": found}, "rows_read": read}

    def _rows_read(self, frame: Any) -> int:
        """Rows that came out of the scans of a frame that has run."""
        plan = frame._jdf.queryExecution().executedPlan()
        nodes, rows = [plan], 0
        while nodes:
            node = nodes.pop()
            if node.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
                nodes.append(node.executedPlan())
                continue
            children = node.children()
            nodes += [children.apply(at) for at in range(children.size())]
            metric = node.metrics().get("numOutputRows")
            if not children.size() and metric.isDefined():
                rows += metric.get().value()
        return rows

    def _data_files(self, table: str) -> list[Path]:
        folders = Path(table).rglob("*.parquet")
        return [file for file in folders if not {".hoodie", "_delta_log"} & set(file.parts)]

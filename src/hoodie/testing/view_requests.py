"""The requests that show all a timeline server knows of one table: each route, at several times, of several files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hoodie.fileview import FolderView
from hoodie.state.handle import open_handle, timeline_of
from hoodie.view import PartitionFiles

Request = tuple[str, dict[str, str]]
"""A path below `/v1/hoodie/view/` and the parameters that the route needs beside those of all."""

OF_TABLE = (
    "timeline/instant/last",
    "timeline/instants/all",
    "datafiles/all/latest/",
    "compactions/pending/",
    "logcompactions/pending/",
    "clustering/pending/",
)
UNTIL = ("basefiles/all/beforeoron/", "slices/all/beforeoron/latest/")
OF_PARTITION = (
    "datafiles/latest/partition",
    "datafiles/all",
    "slices/partition/latest/",
    "slices/partition/latest/inflight/",
    "slices/partition/latest/stateless/",
    "slices/uncompacted/partition/latest/",
    "slices/all",
    "filegroups/all/partition/",
    "filegroups/all/partition/stateless/",
    "filegroups/replaced/partition/",
)
OF_PARTITION_UNTIL = (
    "datafiles/beforeoron/latest/",
    "slices/merged/beforeoron/latest/",
    "filegroups/replaced/beforeoron/",
    "filegroups/replaced/before/",
)
OF_FILE_GROUP = ("datafile/latest/partition", "slices/file/latest/")
TIMES = 4
FILE_IDS = 2
NOWHERE = "no/such=partition"


def view_requests(base: Path) -> tuple[Request, ...]:
    """Requests for the table in the folder `base`, in an order in which all partitions are loaded before they count."""
    handle = open_handle(str(base), {})
    timeline = timeline_of(handle)
    times = _some([one.requested for one in timeline.writes()], TIMES)
    return tuple(_requests(FolderView(handle.storage, timeline).files(), times))


def _requests(found: Sequence[PartitionFiles], times: Sequence[str]) -> Iterator[Request]:
    newest = times[-1] if times else "0"
    for route in UNTIL:
        yield from ((route, {"maxinstant": at}) for at in times)
    for files in (*found, PartitionFiles(NOWHERE, (), ())):
        here = {"partition": files.partition}
        yield from ((route, here) for route in OF_PARTITION)
        for at in times:
            until = {**here, "maxinstant": at}
            yield from ((route, until) for route in OF_PARTITION_UNTIL)
            yield "slices/merged/beforeoron/inflight/latest/", {**until, "currentinstant": at}
            yield "filegroups/replaced/afteroron/", {**here, "mininstant": at}
            for pending in ("true", "false"):
                yield "slices/beforeoron/latest/", {**until, "includependingcompaction": pending}
        ids = sorted({one.name.file_id for one in files.everything})
        for file_id in (*_some(ids, FILE_IDS), "no-such-file-0"):
            group = {**here, "fileid": file_id}
            yield from ((route, group) for route in OF_FILE_GROUP)
            yield "slice/merged/beforeoron/latest/", {**group, "maxinstant": newest}
            yield from (("datafile/on/latest/", {**group, "instant": at}) for at in times)
    for instants in (*((at,) for at in times), tuple(times)):
        yield "datafiles/range/latest/", {"instants": ",".join(instants)}
        yield "slices/range/latest/", {"instants": ",".join(instants)}
    yield from ((route, {}) for route in OF_TABLE)


def _some(found: Iterable[str], most: int) -> list[str]:
    """At most so many of the values, from the first to the last."""
    values = sorted(set(found))
    if len(values) <= most:
        return values
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]

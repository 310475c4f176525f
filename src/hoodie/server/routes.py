"""The questions a timeline server answers: path, parameters, which partitions must be known, and how it answers.

1. Paths and parameters are Hudi's, below `/v1/hoodie/view/`. A trailing slash does not matter.
2. An answer is made of a `Known` and the `Asked`, JSON to Hudi's questions; nothing is loaded here. `FILES` are asked
   by our clients alone and answered by an Arrow stream (`remote.files_arrow`).
3. Parameters are checked before anything else happens: instants are digits, partitions stay in the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from hoodie.errors import Invalid
from hoodie.remote.files_arrow import NO_FILES, FileColumns, encode_files
from hoodie.remote.files_json import base_file_json, groups_json, slice_json
from hoodie.remote.instants_json import instant_json, timeline_json
from hoodie.remote.json_values import Json
from hoodie.remote.known_timeline import told_instants
from hoodie.remote.plans_json import clustering_json, compaction_json
from hoodie.server import answers
from hoodie.server.answers import Groups
from hoodie.server.stores.packed import PackedFiles
from hoodie.spec import CLUSTERING, COMPACTION, LOG_COMPACTION, WRITE_ACTIONS
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.view import BaseFile, FileGroup, FileSlice

VIEW = "/v1/hoodie/view/"
MAX_TEXT = 4096
"""Characters of one value, but for lists of instants or partitions, which the length of a request limits."""

_INSTANT = re.compile(r"[0-9]{1,32}")
Covers = Literal["timeline", "partition", "chosen", "loaded", "all"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of one request, checked."""

    base_path: str
    partition: str
    file_id: str
    max_instant: str
    min_instant: str
    instant: str
    instants: tuple[str, ...]
    partitions: tuple[str, ...]
    with_compactions: bool


class Known(Protocol):
    """What is known of one table at one timeline."""

    @property
    def timeline(self) -> Timeline: ...

    @property
    def plans(self) -> PendingPlans: ...

    def groups(self, partition: str | None, file_id: str = "") -> Groups:
        """File groups of a partition, or of all that are loaded; with `file_id` only the one that has it."""
        ...

    def files(self, partition: str) -> PackedFiles | None:
        """Settled files of a partition, also of groups that were replaced; None where it is not loaded."""
        ...

    def loaded(self) -> tuple[str, ...]:
        """Paths of the partitions that are loaded, sorted."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """One question. `needs`: parameters it cannot do without; `is_checked`: whether the client's timeline must be the
    server's; `looks`: whether the answer is about what no hash covers, so that the timeline is looked at first.
    """

    covers: Covers
    answer: Callable[[Known, Asked], Json | bytes]
    needs: tuple[str, ...] = ()
    is_checked: bool = True
    looks: bool = False


def asked_of(parameters: Mapping[str, str], route: Route) -> Asked:
    """The parameters of a request to `route`.

    Raises:
        Invalid: one is missing, or cannot be.
    """
    for name in ("basepath", *route.needs):
        if not parameters.get(name):
            raise Invalid(f"{name} is missing", remedy="Send it as a parameter of the request", parameter=name)
    for name, value in parameters.items():
        is_long = len(value) > MAX_TEXT and name not in ("instants", "partitions")
        if is_long or not is_text(value):
            raise Invalid(f"{name} cannot be so", remedy="Send what the table has", parameter=name)
    instants = tuple(filter(None, parameters.get("instants", "").split(",")))
    asked = Asked(
        base_path=parameters["basepath"],
        partition=parameters.get("partition", "").removesuffix("/"),
        file_id=parameters.get("fileid", ""),
        max_instant=parameters.get("maxinstant", ""),
        min_instant=parameters.get("mininstant", ""),
        instant=parameters.get("instant", ""),
        instants=instants,
        partitions=_partitions(parameters),
        with_compactions=parameters.get("includependingcompaction", "").lower() == "true",
    )
    for at in (asked.max_instant, asked.min_instant, asked.instant, *instants):
        if at and not _INSTANT.fullmatch(at):
            raise Invalid(f"{at!r} is no instant", remedy="Instants are digits", instant=at)
    ensure_partition(asked.partition)
    if "/" in asked.file_id or "\\" in asked.file_id:
        raise Invalid(f"{asked.file_id!r} is no file id", remedy="Send one of the table's", file_id=asked.file_id)
    return asked


def _partitions(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """The partitions of a request about some.

    Raises:
        Invalid: they are no JSON array of partitions.
    """
    text = parameters.get("partitions", "[]")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Invalid("partitions is no list of texts", remedy="Send a JSON array")
    for one in found:
        ensure_partition(one)
    return tuple(found)


def ensure_partition(partition: str) -> None:
    """Checks that a partition's path stays below the table.

    Raises:
        Invalid: it does not, or is that of Hudi's own folder.
    """
    parts = partition.split("/")
    is_inside = parts[0] != ".hoodie" and not any(part in ("", ".", "..") for part in parts)
    if partition and not (is_inside and len(partition) <= MAX_TEXT and is_text(partition)):
        raise Invalid(f"{partition!r} is no partition", remedy="Send one of the table's", partition=partition)


def is_text(value: str) -> bool:
    """Whether a value can be part of a path: there is no NUL in it, and no half of a character."""
    return not any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in value)


def _base_files(find: Callable[[Groups, Asked], Iterable[BaseFile]]) -> Callable[[Known, Asked], Json]:
    return lambda known, asked: [base_file_json(one, asked.base_path) for one in find(_groups(known, asked), asked)]


def _slices(find: Callable[[Groups, Asked], Iterable[FileSlice]]) -> Callable[[Known, Asked], Json]:
    return lambda known, asked: [slice_json(one, asked.base_path) for one in find(_groups(known, asked), asked)]


def _file_groups(find: Callable[[Groups, Asked], Iterable[FileGroup]]) -> Callable[[Known, Asked], Json]:
    return lambda known, asked: groups_json(
        find(_groups(known, asked), asked),
        asked.base_path,
        (one for one in told_instants(known.timeline) if one.action in WRITE_ACTIONS),
    )


def _by_partition(each: Callable[[Known, Asked, str], Json]) -> Callable[[Known, Asked], Json]:
    return lambda known, asked: {partition: each(known, asked, partition) for partition in known.loaded()}


def _groups(known: Known, asked: Asked) -> Groups:
    """The groups a question is about: of its partition, and of its file id where it names one."""
    return known.groups(asked.partition, asked.file_id)


def _loaded_base_files(find: Callable[[Groups, Asked], Iterable[BaseFile]]) -> Callable[[Known, Asked], Json]:
    return lambda known, asked: [base_file_json(one, asked.base_path) for one in find(known.groups(None), asked)]


def _slices_in(known: Known, asked: Asked) -> Json:
    found = answers.slices_in(known.groups(None), asked.instants)
    return [slice_json(one, asked.base_path) for one in found]


def _base_files_until(known: Known, asked: Asked, partition: str) -> Json:
    found = answers.base_files_until(known.groups(partition), asked.max_instant)
    return [base_file_json(one, asked.base_path) for one in found]


def _slices_until(known: Known, asked: Asked, partition: str) -> Json:
    found = answers.slices_until(known.groups(partition), asked.max_instant, with_compactions=True)
    return [slice_json(one, asked.base_path) for one in found]


def _compactions(action: str) -> Callable[[Known, Asked], Json]:
    def answer(known: Known, asked: Asked) -> Json:
        plans = known.plans
        return [
            compaction_json(one, instant)
            for instant in plans.instants(action)
            for one in plans.compaction(instant).operations
        ]

    return answer


def _clusterings(known: Known, asked: Asked) -> Json:
    plans = known.plans
    return [
        clustering_json(group, instant) for instant in plans.instants(CLUSTERING) for group in plans.groups(instant)
    ]


def _last_instant(known: Known, asked: Asked) -> Json:
    return [instant_json(one) for one in told_instants(known.timeline)[-1:]]


def _all_instants(known: Known, asked: Asked) -> Json:
    return timeline_json(told_instants(known.timeline))


def _partition_names(known: Known, asked: Asked) -> bytes:
    return encode_files((name, NO_FILES) for name in known.loaded())


def _files(known: Known, asked: Asked) -> bytes:
    return encode_files([(asked.partition, _columns(known, asked.partition))])


def _chosen_files(known: Known, asked: Asked) -> bytes:
    return encode_files((name, _columns(known, name)) for name in dict.fromkeys(asked.partitions))


def _all_files(known: Known, asked: Asked) -> bytes:
    return encode_files((name, _columns(known, name)) for name in known.loaded())


def _columns(known: Known, partition: str) -> FileColumns:
    packed = known.files(partition)
    return NO_FILES if packed is None else FileColumns(packed.names(), packed.sizes())


def _done(known: Known, asked: Asked) -> Json:
    return True


_LATEST = _slices(lambda groups, _: answers.latest_slices(groups))
_MERGED = _slices(lambda groups, asked: answers.merged_slices_until(groups, asked.max_instant))
_ALL_GROUPS = _file_groups(lambda groups, _: groups.live())
_UNTIL = ("maxinstant",)

ROUTES: Mapping[str, Route] = {
    "timeline/instant/last": Route("timeline", _last_instant, is_checked=False, looks=True),
    "timeline/instants/all": Route("timeline", _all_instants, is_checked=False, looks=True),
    "datafiles/latest/partition": Route("partition", _base_files(lambda groups, _: answers.latest_base_files(groups))),
    "datafile/latest/partition": Route(
        "partition", _base_files(lambda groups, _: answers.latest_base_files(groups)), ("fileid",)
    ),
    "datafiles/all/latest": Route("loaded", _loaded_base_files(lambda groups, _: answers.latest_base_files(groups))),
    "datafiles/beforeoron/latest": Route(
        "partition", _base_files(lambda groups, asked: answers.base_files_until(groups, asked.max_instant)), _UNTIL
    ),
    "basefiles/all/beforeoron": Route("all", _by_partition(_base_files_until), _UNTIL),
    "datafile/on/latest": Route(
        "partition",
        _base_files(lambda groups, asked: answers.base_files_at(groups, asked.instant)),
        ("instant", "fileid"),
    ),
    "datafiles/all": Route("partition", _base_files(lambda groups, _: answers.all_base_files(groups))),
    "datafiles/range/latest": Route(
        "loaded", _loaded_base_files(lambda groups, asked: answers.base_files_in(groups, asked.instants)), ("instants",)
    ),
    "slices/partition/latest": Route("partition", _LATEST),
    "slices/partition/latest/inflight": Route("partition", _slices(lambda groups, _: answers.newest_slices(groups))),
    "slices/partition/latest/stateless": Route("partition", _LATEST),
    "slices/file/latest": Route("partition", _LATEST, ("fileid",)),
    "slices/uncompacted/partition/latest": Route(
        "partition", _slices(lambda groups, _: answers.latest_uncompacted_slices(groups))
    ),
    "slices/all": Route("partition", _slices(lambda groups, _: answers.all_slices(groups))),
    "slices/range/latest": Route("loaded", _slices_in, ("instants",)),
    "slices/beforeoron/latest": Route(
        "partition",
        _slices(
            lambda groups, asked: answers.slices_until(
                groups, asked.max_instant, with_compactions=asked.with_compactions
            )
        ),
        ("maxinstant", "includependingcompaction"),
    ),
    "slices/all/beforeoron/latest": Route("all", _by_partition(_slices_until), _UNTIL),
    "slices/merged/beforeoron/latest": Route("partition", _MERGED, _UNTIL),
    "slices/merged/beforeoron/inflight/latest": Route("partition", _MERGED, _UNTIL),
    "slice/merged/beforeoron/latest": Route("partition", _MERGED, (*_UNTIL, "fileid")),
    "compactions/pending": Route("timeline", _compactions(COMPACTION)),
    "logcompactions/pending": Route("timeline", _compactions(LOG_COMPACTION), looks=True),
    "clustering/pending": Route("timeline", _clusterings, looks=True),
    "filegroups/all/partition": Route("partition", _ALL_GROUPS),
    "filegroups/all/partition/stateless": Route("partition", _ALL_GROUPS),
    "filegroups/replaced/beforeoron": Route(
        "partition", _file_groups(lambda groups, asked: groups.replaced_when(lambda at: at <= asked.max_instant))
    ),
    "filegroups/replaced/before": Route(
        "partition", _file_groups(lambda groups, asked: groups.replaced_when(lambda at: at < asked.max_instant))
    ),
    "filegroups/replaced/afteroron": Route(
        "partition", _file_groups(lambda groups, asked: groups.replaced_when(lambda at: at >= asked.min_instant))
    ),
    "filegroups/replaced/partition": Route(
        "partition", _file_groups(lambda groups, _: groups.replaced_when(lambda at: True))
    ),
}
"""Questions that are asked with GET, by path."""

FILES: Mapping[str, Route] = {
    "files/partitions": Route("all", _partition_names),
    "files/partition": Route("partition", _files),
    "files/chosen": Route("chosen", _chosen_files, ("partitions",)),
    "files/all": Route("all", _all_files),
}
"""What our clients ask: names of all partitions, and names and sizes of the files of one, some or all."""

COMMANDS: Mapping[str, Route] = {
    "refresh": Route("timeline", _done, is_checked=False),
    "loadpartitions": Route("timeline", _done, ("partitions",), is_checked=False),
    "loadallpartitions": Route("all", _done, is_checked=False),
}
"""What is asked with POST: that the server looks anew, or loads beforehand."""

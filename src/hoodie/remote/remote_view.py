"""The file-system view that a timeline server keeps, asked partition by partition.

1. The server says which files a partition has; file groups and slices are made here, by the timeline this view was
   opened with. Each question says which timeline that is, and a server that knows another one does not answer.
2. `RemoteView` asks the server and nobody else (Hudi's REMOTE_ONLY). `FallingBackView` asks somebody else about the
   partitions the server cannot answer for (REMOTE_FIRST), with one warning; a server that does not answer at all, or
   knows another timeline, is not asked again by this view, and one that does not answer not by others of this process
   for a while (`breaker`).
3. An answer about another partition, or with names that lead out of the table, is wrong, and the server is taken for
   one that does not answer.
4. A server of ours is asked for an Arrow stream of names and sizes; one that does not know that question, as Hudi's
   does not, for JSON.
5. What a server lists may have files of writes that are not committed, as Hudi's does: they are in no slice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Protocol
from urllib.parse import quote_plus

from hoodie.errors import Conflict, Corrupt, HudiError, Unavailable
from hoodie.fileview import FileSystemView
from hoodie.fileview.log_sizes import committed_logs, with_stored_sizes
from hoodie.remote.breaker import Breaker
from hoodie.remote.connection import Connection
from hoodie.remote.files_arrow import FileColumns, parse_files
from hoodie.remote.files_json import parse_group
from hoodie.remote.json_values import Json, elements, not_understood, short
from hoodie.remote.known_timeline import told
from hoodie.remote.names import ensure_partition_name
from hoodie.spec import TableConfig
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import BaseFile, LogFile, PartitionChoice, PartitionFiles, View, load_view, named_files

log = logging.getLogger(__name__)

_ASKED_INSTEAD = "%s. The table itself is asked for %s, and for all else that the server leaves open%s"

LATEST = "99991231235959999"
"""A time after all instants."""

_STATUSES_OF_QUESTION = (500, 501)
_NAMES_BYTES = 6000
"""Of the names of partitions in one question: proxies pass heads of 8 KiB."""


class ViewServer(Protocol):
    """Who answers questions about the files of tables: a `Connection`, or a service in this process."""

    def ask(self, path: str, parameters: Mapping[str, str]) -> Json:
        """The answer to a question below `/v1/hoodie/view/`. Raises as `Connection.ask`."""
        ...

    def ask_files(self, path: str, parameters: Mapping[str, str]) -> bytes | None:
        """The same as an Arrow stream of files; None where it has no such answers. Raises as `Connection.ask_files`."""
        ...


class RemoteView:
    """A `FileSystemView` of the table in `storage` that `server` keeps. `plans`: what is pending, `config`: the
    properties that were read with the timeline, if known.

    Methods raise `Unavailable` when the server does not answer, `Conflict` when it knows another timeline.
    """

    lists_uncommitted = True

    def __init__(
        self,
        server: ViewServer,
        storage: Storage,
        timeline: Timeline,
        plans: PendingPlans | None = None,
        config: TableConfig | None = None,
    ) -> None:
        self.timeline = timeline
        self.table = storage.absolute("")
        self.breaker = server.breaker if isinstance(server, Connection) else Breaker()
        self._server = server
        self._storage = storage
        self._plans = plans or PendingPlans(storage, timeline)
        self._about = {"basepath": self.table, **told(timeline, config)}
        self._loaded: dict[str, PartitionFiles] = {}
        self._columns: dict[str, FileColumns] | None = None
        self._paths: tuple[str, ...] | None = None

    def partitions(self) -> tuple[str, ...]:
        """Partitions with a file slice. One request, whose answer has all of them; two to a server of Hudi's."""
        if self._paths is None and (columns := self._ask_files("files/partitions")) is not None:
            self._paths = tuple(sorted(columns))
        if self._paths is None:
            found = self._ask("slices/all/beforeoron/latest/", maxinstant=LATEST)
            if not isinstance(found, dict):
                raise not_understood("it should map partitions to slices")
            self._paths = tuple(sorted(ensure_partition_name(name) for name in found))
        return self._paths

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        """One request for all of them, or for some hundred partitions that were not asked for before; two for each to
        a server of Hudi's.
        """
        columns = self.columns() if partitions is None else None
        if columns is not None:
            return tuple(named_files(name, columns[name].items()) for name in sorted(columns))
        names = self.partitions() if partitions is None else sorted(set(partitions))
        self._load_together([name for name in names if name not in self._loaded])
        return tuple(self._files(name) for name in names)

    def columns(self) -> Mapping[str, FileColumns] | None:
        """Names and sizes of the files of all partitions, by partition, without an object for each; None from a server
        that does not tell them so. One request.
        """
        if self._columns is None:
            self._columns = self._ask_files("files/all")
        return self._columns

    def load(self, partitions: Collection[str] | None = None) -> View:
        return load_view(self._storage, self.timeline, self.files(partitions), self._plans.compactions())

    def load_chosen(self, choice: PartitionChoice) -> View:
        return self.load(choice.of(self.partitions()))

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        """In version 6 one call for each file. One read for each delta commit that may have written one."""
        if self.timeline.profile.log_naming.has_one_write_per_file:
            return committed_logs(self._storage, self.timeline, logs)
        return committed_logs(self._storage, self.timeline, with_stored_sizes(self._storage, logs).values())

    def _load_together(self, names: Collection[str]) -> None:
        """Asks about several partitions at once, where the server answers such questions."""
        if self._columns is not None:
            told = self._columns
            self._loaded.update((name, named_files(name, told[name].items())) for name in names if name in told)
        elif len(names) > 1:
            for some in _questions(names):
                columns = self._ask_files("files/chosen", partitions=json.dumps(some))
                if columns is None:
                    return
                if columns.keys() != set(some):
                    raise not_understood("asked about some partitions, it tells of others")
                self._loaded.update((name, named_files(name, columns[name].items())) for name in some)

    def _files(self, partition: str) -> PartitionFiles:
        if (
            partition not in self._loaded
            and (columns := self._ask_files("files/partition", partition=partition)) is not None
        ):
            if set(columns) != {partition}:
                raise not_understood(f"asked about {short(partition)}, it tells of others")
            self._loaded[partition] = named_files(partition, columns[partition].items())
        if partition not in self._loaded:
            live = self._ask("filegroups/all/partition/", partition=partition)
            replaced = self._ask("filegroups/replaced/partition/", partition=partition)
            groups = [parse_group(one) for one in chain(elements(live), elements(replaced))]
            for group in groups:
                if group.partition != partition:
                    raise not_understood(f"asked about {short(partition)}, it tells of {short(group.partition)}")
            slices = [part for group in groups for part in group.slices]
            bases: dict[str, BaseFile] = {part.base.path: part.base for part in slices if part.base is not None}
            logs = {one.path: one for part in slices for one in part.logs}
            sorted_logs = [logs[path] for path in sorted(logs)]
            self._loaded[partition] = PartitionFiles(
                partition,
                tuple(bases[path] for path in sorted(bases)),
                tuple(one for one in sorted_logs if not one.name.is_cdc),
                tuple(one for one in sorted_logs if one.name.is_cdc),
            )
        return self._loaded[partition]

    def _ask_files(self, path: str, **parameters: str) -> dict[str, FileColumns] | None:
        body = self._server.ask_files(path, {**self._about, **parameters})
        return None if body is None else parse_files(body)

    def _ask(self, path: str, **parameters: str) -> Json:
        return self._server.ask(path, {**self._about, **parameters})


def _questions(names: Iterable[str]) -> Iterator[list[str]]:
    """The names in lists that fit into the head of a request each."""
    some: list[str] = []
    size = 0
    for name in names:
        length = len(quote_plus(json.dumps(name))) + 6  # a comma and a space
        if some and size + length > _NAMES_BYTES:
            yield some
            some, size = [], 0
        some.append(name)
        size += length
    if some:
        yield some


class FallingBackView:
    """A `FileSystemView` by `remote`, and by what `local` opens for partitions that it does not answer for."""

    lists_uncommitted = True

    def __init__(
        self,
        remote: RemoteView,
        local: Callable[[], FileSystemView],
        storage: Storage,
        plans: PendingPlans | None = None,
    ) -> None:
        self.timeline = remote.timeline
        self._plans = plans or PendingPlans(storage, remote.timeline)
        self._remote = remote
        self._open_local = local
        self._local: FileSystemView | None = None
        self._storage = storage
        self._is_asked = True
        self._has_warned = False

    def partitions(self) -> tuple[str, ...]:
        names = self._told_partitions()
        return self._instead().partitions() if names is None else names

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        if partitions is None and self._told_columns():
            return self._remote.files()
        names = self.partitions() if partitions is None else sorted(set(partitions))
        together = self._told_together(names) if len(names) > 1 else None
        if together is not None:
            return together
        found: dict[str, PartitionFiles] = {}
        for name in names:
            if not self._may_ask():
                break
            try:
                (found[name],) = self._remote.files([name])
            except (Unavailable, Conflict) as error:
                self._gave_up(error, f"partition {short(name)}")
            else:
                self._answered()
        left = [name for name in names if name not in found]
        others = self._instead().files(left) if left else ()
        return tuple(sorted((*found.values(), *others), key=lambda files: files.partition))

    def load(self, partitions: Collection[str] | None = None) -> View:
        return load_view(self._storage, self.timeline, self.files(partitions), self._plans.compactions())

    def load_chosen(self, choice: PartitionChoice) -> View:
        names = self._told_partitions()
        return self._instead().load_chosen(choice) if names is None else self.load(choice.of(names))

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        """As the remote view. Where one of them is gone, whoever looks again asks the table itself: in version 6 a
        writer that was rolled back may have taken it away, and no timeline says so.

        Raises:
            Corrupt: one is gone, or shorter than it was.
        """
        try:
            return self._remote.committed_logs(logs)
        except Corrupt as error:
            self._gave_up(error, "its log files")
            raise

    def _told_together(self, names: Collection[str]) -> tuple[PartitionFiles, ...] | None:
        """The files of some partitions; None where the server does not tell of all of them."""
        if not self._may_ask():
            return None
        try:
            found = self._remote.files(names)
        except (Unavailable, Conflict) as error:
            if error.facts.get("status") not in _STATUSES_OF_QUESTION:  # else it may know of each but one
                self._gave_up(error, f"{len(names)} partitions")
            return None
        self._answered()
        return found

    def _told_columns(self) -> bool:
        """Whether the server tells the files of all partitions at once."""
        if not self._may_ask():
            return False
        try:
            is_told = self._remote.columns() is not None
        except (Unavailable, Conflict) as error:
            self._gave_up(error, "its files")
            return False
        self._answered()
        return is_told

    def _told_partitions(self) -> tuple[str, ...] | None:
        """The partitions as the server knows them; None where it does not tell."""
        if not self._may_ask():
            return None
        try:
            found = self._remote.partitions()
        except (Unavailable, Conflict) as error:
            self._gave_up(error, "its partitions")
            return None
        self._answered()
        return found

    def _instead(self) -> FileSystemView:
        if self._local is None:
            self._local = self._open_local()
        return self._local

    def _may_ask(self) -> bool:
        self._is_asked = self._is_asked and self._remote.breaker.may_ask(self._remote.table)
        return self._is_asked

    def _answered(self) -> None:
        self._remote.breaker.answered(self._remote.table)

    def _gave_up(self, error: HudiError, about: str) -> None:
        """One warning for each view and each silence. What fails inside the server is about this question alone."""
        is_known = self._remote.breaker.failed(self._remote.table, error)
        self._is_asked = error.facts.get("status") in _STATUSES_OF_QUESTION
        if not self._has_warned and not is_known:
            remedy = f". {error.remedy}" if error.remedy else ""
            log.warning(_ASKED_INSTEAD, error.cause, about, remedy)
        self._has_warned = True

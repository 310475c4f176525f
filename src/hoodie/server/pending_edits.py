"""What changes of instants, one after the other, make of the files of a kept view: gathered, then one edit."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pyarrow.compute as pc

from hoodie.server.file_changes import Changes, PartitionChange
from hoodie.server.stores.packed import EMPTY, FileChange
from hoodie.server.stores.store import Edit, ViewStore
from hoodie.spec import InstantTime
from hoodie.timeline import Timeline
from hoodie.view import PartitionFiles, named_files

_INSTANT_OF_LOG = r"^\..*_(?P<instant>[0-9]+)\.(?:log|archive)\."


@dataclass(slots=True)
class _Pending:
    """What became of a partition. `is_new`: it had no files; `cleaned`: what went for good; `rewritten`: file ids that
    got base files.
    """

    is_new: bool
    added: dict[str, int] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    cleaned: set[str] = field(default_factory=set)
    rewritten: set[str] = field(default_factory=set)

    def take(self, change: PartitionChange) -> None:
        added = {name: size for name, size in change.added.items() if name not in self.cleaned}
        self.added.update(added)
        self.removed.difference_update(added)
        self.rewritten.update(_file_id(name) for name in added if not name.startswith("."))
        for name in change.removed:
            self.added.pop(name, None)
        self.removed.update(change.removed)
        if change.is_final:
            self.cleaned.update(change.removed)


class PendingEdits:
    """What becomes of the files in `store`. `paths`: all partitions, if known; those in `unclear` are dropped."""

    def __init__(self, store: ViewStore, paths: frozenset[str] | None, unclear: Collection[str]) -> None:
        self._store = store
        self._paths = paths
        self._came: set[str] = set()
        self._gone: set[str] = set()
        self._partitions: dict[str, _Pending | None] = dict.fromkeys(unclear)

    @property
    def paths(self) -> frozenset[str] | None:
        """All partitions now, if they were known."""
        if self._paths is None or not (self._came or self._gone):
            return self._paths
        return (self._paths | self._came) - self._gone

    def take(self, changes: Changes) -> None:
        """What one instant changed, after those before it."""
        for name, one in changes.partitions.items():
            if name not in self._partitions:
                self._partitions[name] = self._begun(name)
            if one.is_gone:
                self._gone.add(name)
                self._came.discard(name)
            else:
                self._gone.discard(name)
                if one.added and name not in (self._paths or ()):
                    self._came.add(name)
            pending = self._partitions[name]
            if one.is_unclear or one.is_gone:
                self._partitions[name] = None
            elif pending is not None:
                pending.take(one)

    def touched_groups(self, timeline: Timeline) -> Iterator[PartitionFiles]:
        """Files, by now, of groups that got a base file and may have log files of archived writes."""
        if not timeline.profile.log_naming.finds_slice_by_completion:
            return
        for name, pending in self._partitions.items():
            if pending is None or pending.is_new:
                continue
            for file_id in pending.rewritten:
                before = dict(self._store.of_group(name, file_id))
                if any(file.startswith(".") for file in before):
                    mine = {file: size for file, size in pending.added.items() if _file_id(file) == file_id}
                    now = {file: size for file, size in (before | mine).items() if file not in pending.removed}
                    yield named_files(name, now.items())

    def edit(self) -> Edit:
        """All of it."""
        known = {name: pending for name, pending in self._partitions.items() if pending is not None}
        changes = {name: FileChange(pending.added, pending.removed) for name, pending in known.items()}
        return Edit(
            loaded={name: EMPTY.changed(changes[name]) for name, one in known.items() if one.is_new and one.added},
            changes={name: change for name, change in changes.items() if not known[name].is_new},
            dropped=[name for name, pending in self._partitions.items() if pending is None and self._store.has(name)],
        )

    def _begun(self, partition: str) -> _Pending | None:
        """An empty change, where the files are known: none, of one that did not exist when all were loaded."""
        if self._store.has(partition):
            return _Pending(is_new=False)
        is_new = self._paths is not None and partition not in self._paths
        return _Pending(is_new=True) if is_new else None


def written_by(store: ViewStore, instants: Collection[InstantTime]) -> frozenset[str]:
    """Partitions that are loaded and have files whose names say that one of the instants wrote them, or may do so."""
    found: set[str] = set()
    for partition in store.partitions() if instants else ():
        files = store.files(partition)
        if files is not None and any(pc.any(pc.match_substring(files.names(), one)).as_py() for one in instants):
            found.add(partition)
    return frozenset(found)


def instants_of_logs(store: ViewStore) -> frozenset[InstantTime]:
    """The instants in the names of log files that are loaded."""
    found: set[InstantTime] = set()
    for partition in store.partitions():
        files = store.files(partition)
        if files is not None:
            parts = pc.extract_regex(files.names(), _INSTANT_OF_LOG)
            found.update(one for one in pc.unique(pc.struct_field(parts, "instant")).to_pylist() if one is not None)
    return frozenset(found)


def _file_id(name: str) -> str:
    return name.removeprefix(".").partition("_")[0]

"""The storage layout of a table as a value: where each data file lies, and back.

1. The place of a file is a function of its path (partition and name) alone: the version with the greatest `since` that
   is not after the instant in the name, first match by partition; then the strategy of that version.
2. Logical paths are `<partition>/<name>`; places are `<prefix>/<folder>/<partition>/<name>` below a root. Only names of
   data files have a place in a root: all else (`.hoodie/**`, partition metafiles, strangers) lies at the table path.
3. Back is by position, and a place is a file's only if that file, asked again, has this place: two files never share a
   key, and what lies elsewhere is a stranger.
4. Versions are only added; `since` never moves forward over files.

It does not know storage. `docs/format/storage-layout.md` has grammar and examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from hoodie.layout.strategy import NoPrefix, StorageStrategy
from hoodie.spec.file_names import file_id_and_instant
from hoodie.spec.hash_id import one_xxhash32
from hoodie.spec.keys import HOODIE_DIR

Guard = Literal["strict", "open"]

ROOT_SEED: Final = 0
"""Seed of the hash by which groups are spread over roots."""

_REMEMBERED: Final = 100_000


class Location(NamedTuple):
    """Where a data file lies: the number of its root, and its key below it."""

    root: int
    key: str


class Source(NamedTuple):
    """One folder in which data files of the table lie. `prefix` None: below each folder of the root that there is."""

    root: int
    prefix: str | None
    folder: str


@dataclass(frozen=True, slots=True)
class LayoutVersion:
    """From which instant on files lie where. `roots` are numbers of the layout's; none: the table path itself.

    `partitions` limits it to a partition and those below it, or with `*` at the end to those that begin so.
    """

    number: int
    since: str
    text: str
    roots: tuple[int, ...]
    folder: str
    partitions: str = ""
    strategy: StorageStrategy = field(default_factory=NoPrefix)
    _known: dict[tuple[str, str], tuple[int, str] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[object, ...]:
        # What is remembered stays here.
        said = (self.number, self.since, self.text, self.roots, self.folder, self.partitions, self.strategy)
        return LayoutVersion, said

    def is_for(self, partition: str) -> bool:
        if not self.partitions or self.partitions == partition:
            return True
        if self.partitions.endswith("*"):
            return partition.startswith(self.partitions[:-1])
        return partition.startswith(self.partitions + "/")

    def location(self, partition: str, file_id: str) -> tuple[int, str] | None:
        """The root and the folder in it, down to the table's; None: the table path. It is remembered: files of a group
        ask again and again, and a hash in Python takes longer than all else here.
        """
        group = partition, file_id
        try:
            return self._known[group]
        except KeyError:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[group] = self._located(partition, file_id) if self.roots else None
            return found

    def _located(self, partition: str, file_id: str) -> tuple[int, str]:
        number = 0
        if len(self.roots) > 1:
            number = one_xxhash32((partition + file_id).encode(), ROOT_SEED) % len(self.roots)
        prefix = self.strategy.location(partition, file_id)
        return self.roots[number], f"{prefix}/{self.folder}" if prefix else self.folder


@dataclass(frozen=True, slots=True)
class Layout:
    """Roots and versions, oldest first, as `hoodie.properties` has them. Files that no version is for lie at the table
    path, as in any table: version 0.
    """

    roots: tuple[str, ...]
    versions: tuple[LayoutVersion, ...]
    uuid: str
    guard: Guard = "strict"

    def place(self, path: str) -> Location | None:
        """Where the data file of a logical path lies; None at the table path. Who has many paths asks
        `places.places_of`.
        """
        partition, _, name = path.rpartition("/")
        if partition.startswith(HOODIE_DIR) and partition.partition("/")[0] == HOODIE_DIR:
            return None
        parts = file_id_and_instant(name)
        if parts is None:
            return None
        file_id, instant = parts
        version = self.version_at(partition, instant)
        found = None if version is None else version.location(partition, file_id)
        return None if found is None else Location(found[0], f"{found[1]}/{path}")

    def version_at(self, partition: str, instant: str) -> LayoutVersion | None:
        """The version by which a file of `instant` was placed; None: the one before all others."""
        for version in reversed(self.versions):
            if version.since <= instant and (not version.partitions or version.is_for(partition)):
                return version
        return None

    def logical(self, root: int, key: str) -> str | None:
        """The logical path of the data file at a place; None for what is no file of this table, or not in its place."""
        for version in self.versions:
            if root in version.roots:
                path = self.path_below(version, key)
                if path is not None and self.place(path) == (root, key):
                    return path
        return None

    def path_below(self, version: LayoutVersion, key: str) -> str | None:
        """What follows the folders that `version` puts in front, whether or not it is that file's place."""
        start = f"{version.folder}/"
        if not is_bare(version):
            prefix, slash, key = key.partition("/")
            if not slash or not prefix:
                return None
        return key[len(start) :] if key.startswith(start) else None

    @property
    def sources(self) -> tuple[Source, ...]:
        """All folders in which files of the table may lie, besides the table path; each once."""
        found: dict[Source, None] = {}
        for version in self.versions:
            prefixes = version.strategy.prefixes
            for root in version.roots:
                for prefix in (None,) if prefixes is None else prefixes:
                    found[Source(root, prefix, version.folder)] = None
        return tuple(found)

    @property
    def claims(self) -> tuple[tuple[int, str], ...]:
        """Folders of roots that belong to the table: (root, folder), each once."""
        return tuple(dict.fromkeys((root, version.folder) for version in self.versions for root in version.roots))

    def is_bare_in(self, root: int) -> bool:
        """Whether files may lie in the table's folder of a root without a prefix."""
        return any(root in version.roots and is_bare(version) for version in self.versions)


def is_bare(version: LayoutVersion) -> bool:
    """Whether its files lie in the table's folder of a root, without a prefix."""
    return version.strategy.prefixes == ("",)

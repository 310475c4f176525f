"""A table's storage whose data files lie in other stores: paths are converted here and nowhere else.

1. All who use it name files by logical paths; `FileInfo`, listings and `absolute` have logical ones, too. `physical` is
   for readers that open files themselves (Spark's scan), and for people.
2. Data files are routed by the layout; all else goes to the table path. Without a layout everything does.
3. Listings show a file only in its place. A root that does not answer is an error, never fewer files; so is one that
   does not know the table where a file of it is missing, as when a disk is not mounted.
4. Nothing is changed in a root whose owner object does not name this table, at this path: it is read once for each
   storage value.
5. A folder is deleted file by file, by recomputed places: never all that lies below a root.
6. Listing a folder of the table asks each prefix: callers that want many use `list` or `data_files`, which ask each
   prefix once, whatever the number of partitions.

Who may have roots where is decided in `opening`; commits and locks are those of the table path.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hoodie.errors import Conflict, HudiError, Missing
from hoodie.layout.access import Access
from hoodie.layout.apart import ensure_free, ensure_nobody_above, ensure_outside
from hoodie.layout.layout import Layout, Location, Source
from hoodie.layout.owner import claim, disclaim, ensure_owner, load_owner
from hoodie.spec.keys import HOODIE_DIR
from hoodie.spec.typed_values import is_plain_path
from hoodie.storage import FileInfo, Listing, OutputFile, Storage, checked_path
from hoodie.storage.fence import Fence, HasFences, with_fence

if TYPE_CHECKING:
    from hoodie.layout.places import Places

LISTED_AT_ONCE: Final = 64
COPY: Final = "has the name of a data file, but that file's place is another: a copy, or misplaced"
STRANGER: Final = "is no data file that has a place there"
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FederatedStorage:
    """The table path's storage and those of the roots, in the layout's order, behind one set of logical paths."""

    outer: Storage
    access: Access = field(default_factory=Access, compare=False)
    layout: Layout | None = None
    roots: tuple[Storage, ...] = ()
    _owned: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    @property
    def fences(self) -> tuple[Fence, ...]:
        return self.outer.fences if isinstance(self.outer, HasFences) else ()

    def with_fence(self, fence: Fence) -> FederatedStorage:
        """The same storage, all of whose stores ask `fence`, too."""
        fenced = tuple(with_fence(root, fence) for root in self.roots)
        return replace(self, outer=with_fence(self.outer, fence), roots=fenced)

    @property
    def uri(self) -> str:
        return self.outer.uri

    @property
    def scheme(self) -> str:
        return self.outer.scheme

    def absolute(self, path: str) -> str:
        return self.outer.absolute(path)

    def physical(self, path: str) -> str:
        """The full name under which a file really lies."""
        at = self._place(path)
        return self.outer.absolute(path) if at is None else self.roots[at.root].absolute(at.key)

    def physicals(self, paths: Sequence[str]) -> Sequence[str]:
        """`physical` of each of many paths, in their order."""
        if self.layout is None:
            return [self.outer.absolute(path) for path in paths]
        found = _places_of(self.layout, [checked_path(path) for path in paths])
        stores = (*self.roots, self.outer)  # the table path is number -1
        return [stores[root].absolute(key) for root, key in zip(found.roots, found.keys, strict=True)]

    # Listing

    def list_dir(self, path: str) -> Listing:
        found = self.outer.list_dir(path)
        if self._is_own(path):
            return found
        listed = self._of_sources(lambda source: self._list_dir_of(source, path))
        files = [*self._at_home(found.files), *self._shown((source, listing.files) for source, listing in listed)]
        inside = (_inside(source, one) for source, listing in listed for one in listing.dirs)
        dirs = {*found.dirs, *filter(None, inside)}
        return Listing(tuple(sorted(files, key=_by_path)), tuple(sorted(dirs)))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        if self._is_own(prefix):
            return self.outer.list(prefix, start_after=start_after)
        at_home = (file for file in self.outer.list(prefix, start_after=start_after) if self._place(file.path) is None)
        elsewhere = (file for file in self._in_roots(prefix) if start_after is None or file.path > start_after)
        return heapq.merge(at_home, elsewhere, key=_by_path)

    def data_files(self) -> tuple[FileInfo, ...]:
        """All files outside the table's own folder, in path order: one listing of each prefix and of each folder at the
        table path. That the roots are the table's is checked first, as one that is not mounted looks empty.
        """
        self.ensure_owned()
        top = self.outer.list_dir("")
        folders = [folder for folder in top.dirs if folder != HOODIE_DIR]
        below = _at_once(lambda folder: tuple(self.outer.list(folder)), folders)
        home = self._at_home([file for files in (top.files, *below) for file in files])
        return tuple(sorted((*home, *self._in_roots("")), key=_by_path))

    def strays(self) -> Sequence[tuple[str, str]]:
        """Files in folders of the table, and data files at the table path, that nobody looks at: their full names, and
        what they are. One listing of each prefix, as `data_files`.
        """
        self.ensure_owned()
        top = self.outer.list_dir("")
        folders = [folder for folder in top.dirs if folder != HOODIE_DIR]
        below = _at_once(lambda folder: tuple(self.outer.list(folder)), folders)
        found = [
            (self.outer.absolute(file.path), COPY)
            for files in (top.files, *below)
            for file in files
            if self._place(file.path) is not None
        ]
        for source, files in self._of_sources(lambda one: tuple(self.roots[one.root].list(_start(one)))):
            for file in files:
                path = _inside(source, file.path)
                place = None if path is None or not is_plain_path(path) else self._place(path)
                if place != (source.root, file.path):
                    what = STRANGER if place is None else COPY
                    found.append((self.roots[source.root].absolute(file.path), what))
        return sorted(found)

    def ensure_owned(self) -> None:
        """Checks that all folders of roots are this table's. Raises as `ensure_owner`."""
        if self.layout is not None:
            uuid = self.layout.uuid
            _at_once(lambda one: ensure_owner(self.roots[one[0]], one[1], uuid, self.uri), self.layout.claims)

    def unreached(self) -> Sequence[tuple[str, HudiError]]:
        """Roots that do not answer, or do not say that they are this table's, each with the error."""
        layout = self.layout
        if layout is None:
            return []

        def tried(claim: tuple[int, str]) -> HudiError | None:
            try:
                ensure_owner(self.roots[claim[0]], claim[1], layout.uuid, self.uri)
            except HudiError as error:
                return error
            return None

        answers = _at_once(tried, layout.claims)
        found = {root: error for (root, _), error in zip(layout.claims, answers, strict=True) if error is not None}
        return [(layout.roots[root], error) for root, error in found.items()]

    def ensure_free(self) -> None:
        """Checks that files by the newest version would get among nobody else's, before its folders are claimed. Raises
        as `apart.ensure_outside` and `apart.ensure_free`.
        """
        if self.layout is not None and self.layout.versions:
            newest = self.layout.versions[-1]
            ensure_outside(replace(self.layout, versions=(newest,)), self.uri)
            for root in newest.roots:
                ensure_free(self.roots[root], newest, self.layout.uuid, self.uri)
                ensure_nobody_above(self.layout.roots[root], self.access.open_root, self.uri)

    def claim(self, *, is_new: bool = False, was_moved: bool = False) -> None:
        """Makes all folders of roots the table's that the layout names. `is_new`: there was no table with storage paths
        at the table path; then no file may lie where its would. One listing of each root, and of each prefix that is
        there. Raises as `owner.claim`.
        """
        if is_new:
            self._ensure_unused()
        if self.layout is not None:
            for root, folder in self.layout.claims:
                bare = self.layout.is_bare_in(root)
                claim(self.roots[root], folder, self.layout.uuid, self.uri, is_new, was_moved, bare)

    def disclaim(self) -> None:
        """Gives all folders of roots up, of a table whose files are gone."""
        if self.layout is not None:
            for root, folder in self.layout.claims:
                disclaim(self.roots[root], folder, self.layout.uuid, self.uri)

    def _ensure_unused(self) -> None:
        """Checks that no file lies where files of this table would, as they would be listed with them.

        Raises:
            Conflict: one does.
        """
        tops = _at_once(lambda root: set(root.list_dir("").dirs), self.roots)
        there = [one for one in self._sources() if (one.prefix or one.folder).partition("/")[0] in tops[one.root]]
        for source, file in zip(there, _at_once(self._first_file, there), strict=True):
            if file is not None:
                where = self.roots[source.root].absolute(file.path)
                raise Conflict(
                    f"Files lie in the storage paths where those of {self.uri} would, such as {where}: they would be "
                    "taken for files of this table",
                    remedy="If another table was here and was moved, say so there (hoodie relayout --claim), and give "
                    "this one another folder (hoodie.storage.folder); if it is gone, delete its files",
                    path=where,
                )

    def _in_roots(self, prefix: str) -> Sequence[FileInfo]:
        checked_path(prefix, root_allowed=True)
        found = self._of_sources(lambda source: tuple(self.roots[source.root].list(_below(_start(source), prefix))))
        return sorted(self._shown(found), key=_by_path)

    def _first_file(self, source: Source) -> FileInfo | None:
        return next(self.roots[source.root].list(_start(source)), None)

    def _of_sources(self, work: Callable[[Source], R]) -> Sequence[tuple[Source, R]]:
        """Answers for each folder in which files may lie. Where its prefixes are not known the root is listed."""
        sources = self._sources()
        return list(zip(sources, _at_once(work, sources), strict=True))

    def _sources(self) -> Sequence[Source]:
        if self.layout is None:
            return []
        sources: dict[Source, None] = {}
        for source in self.layout.sources:
            if source.prefix is not None:
                sources[source] = None
                continue
            for prefix in self.roots[source.root].list_dir("").dirs:
                if not prefix.startswith("."):
                    sources[source._replace(prefix=prefix)] = None
        return tuple(sources)

    def _list_dir_of(self, source: Source, path: str) -> Listing:
        return self.roots[source.root].list_dir(_below(_start(source), path))

    def _shown(self, found: Iterable[tuple[Source, Iterable[FileInfo]]]) -> Sequence[FileInfo]:
        """Those of the files at sources that are the table's and in their place, by logical paths."""
        if self.layout is None:
            return []
        listed: list[tuple[int, FileInfo]] = []
        paths: list[str] = []
        for source, files in found:
            start = f"{_start(source)}/"
            at = len(start)
            for file in files:
                listed.append((source.root, file))
                paths.append(file.path[at:] if file.path.startswith(start) else "")  # an empty one is not plain
        places = _places_of(self.layout, paths)
        return [
            FileInfo(path, file.size_bytes, file.modified_ms)
            for (root, file), path, at, key, is_plain in zip(
                listed, paths, places.roots, places.keys, _plain_paths(paths), strict=True
            )
            if is_plain and at == root and key == file.path
        ]

    def _at_home(self, files: Sequence[FileInfo]) -> Sequence[FileInfo]:
        """Those of the files at the table path that lie there by the layout."""
        if self.layout is None:
            return files
        places = _places_of(self.layout, [file.path for file in files])
        return [file for file, root in zip(files, places.roots, strict=True) if root < 0]

    # Files

    def head(self, path: str) -> FileInfo:
        return replace(self._looked_at(path, lambda store, key: store.head(key), is_probe=True), path=path)

    def read(self, path: str) -> bytes:
        return self._looked_at(path, lambda store, key: store.read(key))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._looked_at(path, lambda store, key: store.read_range(key, start, length))

    def open_input(self, path: str) -> Any:
        return self._looked_at(path, lambda store, key: store.open_input(key))

    def create(self, path: str, data: bytes) -> None:
        store, key = self._to_change(path)
        store.create(key, data)

    def put(self, path: str, data: bytes) -> None:
        store, key = self._to_change(path)
        store.put(key, data)

    def open_output(self, path: str) -> OutputFile:
        store, key = self._to_change(path)
        return store.open_output(key)

    def delete(self, path: str) -> bool:
        store, key = self._to_change(path)
        return store.delete(key)

    def delete_dir(self, path: str) -> int:
        removed = 0
        if not self._is_own(path):
            files = [file.path for file in self._in_roots(path)]
            removed = sum(_at_once(self.delete, files))
            if path and any(root.scheme == "file" for root in self.roots):
                self._of_sources(lambda source: self._delete_empty(source, path))
        return removed + self.outer.delete_dir(path)

    def _delete_empty(self, source: Source, path: str) -> None:
        """Removes what a disk leaves of a folder whose files are gone; one with strangers stays."""
        root, folder = self.roots[source.root], _below(_start(source), path)
        if root.scheme == "file" and next(root.list(folder), None) is None:
            root.delete_dir(folder)

    def _looked_at(self, path: str, look: Callable[[Storage, str], R], *, is_probe: bool = False) -> R:
        """What a look at a file in its place gives. Where the file is missing, the root has to know the table.
        `is_probe`: it may well be missing, so that a root which was asked before the first change is believed.
        """
        at = self._place(path)
        if at is None:
            return look(self.outer, path)
        try:
            return look(self.roots[at.root], at.key)
        except Missing:
            is_believed = is_probe and at.root in self._owned
            for root, folder in () if self.layout is None or is_believed else self.layout.claims:
                if root == at.root:
                    load_owner(self.roots[root], folder)
            raise

    def _to_change(self, path: str) -> tuple[Storage, str]:
        at = self._place(path)
        if at is None or self.layout is None:
            return self.outer, path
        if at.root not in self._owned:
            for root, folder in self.layout.claims:
                if root == at.root:
                    ensure_owner(self.roots[root], folder, self.layout.uuid, self.uri)
            self._owned.add(at.root)
        return self.roots[at.root], at.key

    def _place(self, path: str) -> Location | None:
        return None if self.layout is None else self.layout.place(checked_path(path))

    def _is_own(self, path: str) -> bool:
        return self.layout is None or path.partition("/")[0] == HOODIE_DIR


def physical(storage: Storage, path: str) -> str:
    """The full name under which a file of any table's storage really lies."""
    return storage.physical(path) if isinstance(storage, FederatedStorage) else storage.absolute(path)


def stores_of(storage: Storage) -> tuple[Storage, ...]:
    """The storages in which files of a table lie: its own, or that of its table path and those of its roots."""
    return (storage.outer, *storage.roots) if isinstance(storage, FederatedStorage) else (storage,)


def physicals(storage: Storage, paths: Sequence[str]) -> Sequence[str]:
    """`physical` of each of many paths, in their order."""
    if isinstance(storage, FederatedStorage):
        return storage.physicals(paths)
    return [storage.absolute(path) for path in paths]


def _places_of(layout: Layout, paths: Sequence[str]) -> Places:
    from hoodie.layout.places import places_of  # noqa: PLC0415 - loads Arrow, which who reads properties can spare

    return places_of(layout, paths)


def _plain_paths(paths: Sequence[str]) -> list[bool]:
    from hoodie.layout.places import plain_paths  # noqa: PLC0415 - as above

    return plain_paths(paths)


def _inside(source: Source, key: str) -> str | None:
    start = f"{_start(source)}/"
    return key[len(start) :] if key.startswith(start) else None


def _start(source: Source) -> str:
    return f"{source.prefix}/{source.folder}" if source.prefix else source.folder


def _below(folder: str, path: str) -> str:
    return f"{folder}/{path}" if path else folder


def _by_path(file: FileInfo) -> str:
    return file.path


def _at_once(work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
    """Answers in the order of items, many asked at the same time. The first error is raised."""
    if len(items) <= 1:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - loads much that who reads properties can spare

    with ThreadPoolExecutor(min(LISTED_AT_ONCE, len(items)), thread_name_prefix="hoodie-roots") as pool:
        return list(pool.map(work, items))

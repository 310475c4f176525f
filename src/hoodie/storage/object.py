"""Bytes in an object store: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.

1. `create` is one conditional PUT. It carries in the object's metadata a token nobody else has, so that an "already
   there" that answers our own repeated request is told from another's win, even if both wrote the same or no bytes.
2. Requests are repeated by obstore; here only what a lost answer means is decided.
3. Folders do not exist. A zero-byte object whose key ends in `/`, as Hadoop and web consoles leave behind, is not a
   file; obstore does not show the slash, so `list` can tell only where something follows below it.
4. obstore's threads do not survive `fork`: a forked child is refused instead of hanging.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import obstore
import pyarrow as pa
from obstore import exceptions as foreign
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from hoodie.env import Env, SystemEnv
from hoodie.errors import CommitUnknown, Conflict, HudiError, Invalid, Missing, Unavailable, Unsupported
from hoodie.storage.contract import FileInfo, Listing, checked_path, checked_range
from hoodie.storage.fence import Fence
from hoodie.storage.lease import LOCKS_FOLDER
from hoodie.storage.object_config import Location, masked, open_store, parse_location, secrets_of
from hoodie.storage.object_io import ObjectInput, ObjectOutput, get_whole, until_whole

T = TypeVar("T")
_PAGE = 1000
_TOKEN = "hoodiecreator"  # Azure wants metadata names that are identifiers
_CREATE_ATTEMPTS = 4
# Answers that say for sure that nothing was done: not 408, 409, 412, 429.
_REFUSED = re.compile(r"status code: 4(?!08|09|12|29)\d\d|builder error")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_CREDENTIALS = "Give the right ones as options or in the environment, then retry"
_CAUSES = {
    "RequestTimeTooSkewed": ("this machine's clock differs from the store's", "Set the clock, then retry"),
    "SignatureDoesNotMatch": ("the secret key does not fit the access key", _CREDENTIALS),
    "InvalidAccessKeyId": ("the store does not know the access key", _CREDENTIALS),
    "InvalidToken": ("the session token is not valid", _CREDENTIALS),
    "ExpiredToken": ("the session token has expired", "Get a new one, then retry"),
    "AuthorizationHeaderMalformed": ("the request is signed for another region", "Set aws_region to the bucket's"),
}
"""By the store's own code for an error: its cause and its remedy, where the status alone misleads."""
_MAX_KEY = 1024
"""Of an object's whole name. S3 and Google's store count bytes, Azure characters."""

_WRITING = frozenset({"create", "write"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Absent(Exception):
    """After a failed create the object is not there: ask again."""


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """Storage below `scheme://bucket/prefix`. Pickles hold the options, so they are secret; `repr` is not."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    env: Env = field(default_factory=SystemEnv, repr=False, compare=False)
    fences: tuple[Fence, ...] = field(default=(), init=False, repr=False, compare=False)
    _location: Location = field(init=False, repr=False, compare=False)
    _store: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        location = parse_location(self.uri)
        object.__setattr__(self, "uri", location.uri)
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "_location", location)
        object.__setattr__(self, "_store", open_store(location, self.options))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.uri, dict(self.options), self.env)

    def with_fence(self, fence: Fence) -> ObjectStorage:
        """The same storage with the same client, which asks `fence`, too, before it deletes or makes an instant."""
        same = object.__new__(ObjectStorage)
        for name in self.__slots__:
            object.__setattr__(same, name, getattr(self, name))
        object.__setattr__(same, "fences", (*(one for one in self.fences if not one.is_over), fence))
        return same

    @property
    def scheme(self) -> str:
        return self._location.scheme

    def absolute(self, path: str) -> str:
        return f"{self.uri}/{checked_path(path)}" if path else self.uri

    def list_dir(self, path: str) -> Listing:
        if self._is_too_long(path):
            return Listing((), ())
        with self._calling("list", checked_path(path, root_allowed=True)):
            found = self._whole(lambda: obstore.list_with_delimiter(self._store, path or None))
        files = (_info(meta) for meta in found["objects"] if meta["path"] not in ("", path))
        return Listing(tuple(sorted(files, key=lambda info: info.path)), tuple(sorted(found["common_prefixes"])))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        checked_path(prefix, root_allowed=True)
        return _without_folder_marks(self._listed(prefix, start_after), prefix)

    def head(self, path: str) -> FileInfo:
        with self._calling("look at", checked_path(path)):
            return _info(self._whole(lambda: self._head(path)))

    def read(self, path: str) -> bytes:
        with self._calling("read", checked_path(path)):
            return get_whole(self._store, path, self.env.sleep)[0]

    def read_range(self, path: str, start: int, length: int) -> bytes:
        checked_range(path, start, length)
        try:
            with self._calling("read", checked_path(path)):
                if not length:
                    return b""
                return get_whole(self._store, path, self.env.sleep, {"range": (start, start + length)})[0]
        except Unavailable:
            # A range past the end is refused (416); obstore has no error of its own for that.
            if start >= self.head(path).size_bytes:
                return b""
            raise

    def create(self, path: str, data: bytes) -> None:
        self._ensure_held(path)
        token = self.env.uuid()
        attempts = Retrying(
            stop=stop_after_attempt(_CREATE_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(_Absent),
            sleep=self.env.sleep,
        )
        try:
            attempts(self._create_once, checked_path(path), data, token)
        except RetryError as error:
            raise Unavailable(
                f"Cannot create {self.absolute(path)}: the store keeps failing and the file is not there",
                remedy="Check the store, then retry",
                path=self.absolute(path),
            ) from error.last_attempt.exception().__cause__  # type: ignore[union-attr]

    def put(self, path: str, data: bytes) -> None:
        self._ensure_held(path)
        with self._calling("write", checked_path(path)):
            self._whole(lambda: obstore.put(self._store, path, data, use_multipart=False))

    def delete(self, path: str) -> bool:
        self._ensure_held(path, to_delete=True)
        try:
            self.head(path)
            with self._calling("delete", path):
                self._whole(lambda: obstore.delete(self._store, path))
        except Missing:
            return False
        return True

    def delete_dir(self, path: str) -> int:
        removed = 0
        page: list[str] = []
        for info in self.list(path):
            if not any(fence.keeps(info.path) for fence in self.fences):
                page.append(info.path)
            if len(page) == _PAGE:
                removed += self._delete_all(page)
                page = []
        return removed + self._delete_all(page)

    def open_input(self, path: str) -> Any:
        checked_path(path)
        found = ObjectInput(self._store, path, lambda action: self._calling(action, path), self.env.sleep)
        return pa.PythonFile(found, mode="r")

    def open_output(self, path: str) -> ObjectOutput:
        checked_path(path)
        return ObjectOutput(self._store, path, lambda action: self._calling(action, path), self.env.sleep)

    # A lease (`hoodie.storage.lease`) needs more of the store than the contract has: versions of one object.

    def read_version(self, path: str) -> tuple[bytes, Mapping[str, str]]:
        """The bytes of a file, and what names this version of it.

        Raises:
            Missing: no such file.
        """
        with self._calling("read", checked_path(path)):
            data, found = get_whole(self._store, path, self.env.sleep)
            return data, _version(found.meta)

    def replace_version(self, path: str, data: bytes, version: Mapping[str, str]) -> Mapping[str, str]:
        """Replace that very version of a file; the new version.

        Raises:
            Conflict: the file was changed or removed since.
        """
        try:
            with self._calling("write", checked_path(path)):
                return _version(obstore.put(self._store, path, data, mode=cast(Any, dict(version))))
        except Missing as error:
            raise Conflict(f"{self.absolute(path)} was removed meanwhile", path=self.absolute(path)) from error

    def _ensure_held(self, path: str, *, to_delete: bool = False) -> None:
        """Asks the fences before something is deleted, or a small file is made: an instant. Raises as they do."""
        if not path.startswith(LOCKS_FOLDER):
            for fence in self.fences:
                fence.ensure_held(to_delete=to_delete)

    def _create_once(self, path: str, data: bytes, token: str) -> None:
        try:
            with self._calling("create", path):
                obstore.put(self._store, path, data, mode="create", attributes={_TOKEN: token}, use_multipart=False)
        except (Conflict, Unavailable) as error:
            if error.facts.get("refused"):
                raise
            # Facts: (1) only our own requests carry `token`; (2) an object with it is complete, as PUT is atomic;
            # (3) an object without it is another's, and conditional PUT keeps it so; (4) if there is none, another's
            # request may have been in the way for a moment (409), or ours was never done: asking again is safe by 1-3.
            owner = self._creator(path, error)
            if owner is None:
                raise _Absent from error
            if owner != token:
                raise Conflict(f"{self.absolute(path)} exists already", path=self.absolute(path)) from error

    def _creator(self, path: str, lost: HudiError) -> str | None:
        """Token of who created a file, "" if it has none, None if the file is not there."""
        try:
            with self._calling("look at", path):
                return str(obstore.get(self._store, path, options={"head": True}).attributes.get(_TOKEN, ""))
        except Missing:
            return None
        except HudiError as error:
            if isinstance(lost, Conflict):
                raise Conflict(f"{self.absolute(path)} exists already", path=self.absolute(path)) from error
            raise CommitUnknown(
                f"The answer to creating {self.absolute(path)} was lost ({lost.cause})",
                remedy="When the store answers again, look whether the file is there",
                path=self.absolute(path),
            ) from error

    def _listed(self, prefix: str, start_after: str | None) -> Iterator[FileInfo]:
        if self._is_too_long(prefix):
            return
        last, pages = start_after, None

        def next_page() -> Any:
            nonlocal pages
            if pages is None:
                pages = iter(obstore.list(self._store, prefix or None, offset=last or None, chunk_size=_PAGE))
            try:
                return next(pages, None)
            except BaseException:
                pages = None  # to be listed again from the last page on
                raise

        while True:
            with self._calling("list", prefix):
                page = self._whole(next_page)
            if page is None:
                return
            # Compared again, because obstore drops a slash at the end of the offset.
            yield from [_info(meta) for meta in page if last is None or meta["path"] > last]
            last = max([last or "", *(meta["path"] for meta in page)])

    def _delete_all(self, paths: Sequence[str]) -> int:
        self._ensure_held("", to_delete=True)
        with self._calling("delete", ""):
            try:
                self._whole(lambda: obstore.delete(self._store, paths))
            except FileNotFoundError:
                # Google and Azure stop at a file that somebody else removed first.
                for path in paths:
                    with suppress(FileNotFoundError):
                        obstore.delete(self._store, path)
        return len(paths)

    def _head(self, path: str) -> Any:
        try:
            return obstore.head(self._store, path)
        except FileNotFoundError:
            raise
        except (foreign.PermissionDeniedError, foreign.GenericError):
            # The answer to a HEAD has no body, in which the store could say why; that to a GET has.
            obstore.get(self._store, path, options={"range": (0, 1)})
            raise

    def _whole(self, call: Callable[[], T]) -> T:
        return until_whole(call, self.env.sleep)

    def _is_too_long(self, path: str) -> bool:
        """Whether no object can have this name."""
        prefix = self._location.prefix
        name = f"{prefix}/{path}" if prefix else path
        return len(name if self.scheme == "az" else name.encode()) > _MAX_KEY

    @contextmanager
    def _calling(self, action: str, path: str) -> Iterator[None]:
        """Around each call of obstore: refuse a forked child and names the store would change, translate errors."""
        _ensure_not_forked()
        if "\\" in path and self.scheme == "az":
            raise Invalid(
                f"Azure would turn the backslash in {path!r} into a slash", remedy="Use another name", path=path
            )
        if action != "list" and self._is_too_long(path):
            full = self.absolute(path)
            if action in _WRITING:
                raise Invalid(
                    f"Cannot {action} {full}: a name has at most {_MAX_KEY} bytes there",
                    remedy="Use shorter partition values or a shorter base",
                    path=full,
                )
            raise Missing(f"{full} does not exist", path=full)
        try:
            yield
        except HudiError:
            raise
        except Exception as error:
            failure = object_failure(error, action, self.absolute(path), secrets_of(self.options))
            if failure is None:
                raise
            raise failure from None  # the foreign text may hold what we masked


def object_failure(error: Exception, action: str, path: str, secrets: tuple[str, ...]) -> HudiError | None:
    """The error to raise for one of obstore, met while doing `action` to `path`; None if it is not obstore's."""
    text = str(error)
    shown = masked(text, secrets)
    if any(code in text for code in ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")):
        return Unavailable(
            f"Cannot {action} {path}: its bucket or container does not exist",
            remedy="Create it, or correct the URL",
            path=path,
            refused=True,
        )
    code = _code_of(text)
    if code in _CAUSES:
        cause, remedy = _CAUSES[code]
        return Unavailable(f"Cannot {action} {path}: {cause} ({code})", remedy=remedy, path=path, refused=True)
    match error:
        case FileNotFoundError():
            return Missing(f"{path} does not exist", path=path)
        case foreign.AlreadyExistsError() | foreign.PreconditionError() | foreign.NotModifiedError():
            return Conflict(f"{path} exists already or was changed meanwhile", path=path)
        case foreign.PermissionDeniedError():
            said = f" ({code})" if code else ""
            return Unavailable(
                f"Cannot {action} {path}: the store denies permission{said}",
                remedy="Grant these credentials access to it, then retry",
                path=path,
                refused=True,
            )
        case foreign.UnauthenticatedError():
            return Unavailable(
                f"Cannot {action} {path}: the store does not accept the credentials",
                remedy="Give valid ones as options or in the environment, then retry",
                path=path,
                refused=True,
            )
        case foreign.NotSupportedError() | NotImplementedError():
            return Unsupported(f"Cannot {action} {path}: the store cannot do that ({shown})", path=path)
        case foreign.InvalidPathError():
            return Invalid(f"The store does not take the name {path!r}: {shown}", path=path)
        case ValueError() if "parse path" in text:
            return Invalid(f"The store does not take the name {path!r}: {shown}", path=path)
        case foreign.UnknownConfigurationKeyError():
            return Invalid(f"Cannot {action} {path}: the store does not know an option: {shown}", path=path)
        case foreign.BaseError() | OSError():
            return Unavailable(
                f"Cannot {action} {path}: {shown}" + (f" ({code})" if code else ""),
                remedy="Check endpoint, credentials and network, then retry",
                path=path,
                refused=_REFUSED.search(text) is not None,
            )
        case _:
            return None


def _code_of(text: str) -> str:
    """What the store itself calls an error; empty when it does not say."""
    found = _CODE.search(text)
    return "" if found is None else found[1]


def _info(meta: Mapping[str, Any]) -> FileInfo:
    return FileInfo(meta["path"], meta["size"], (meta["last_modified"] - _EPOCH) // timedelta(milliseconds=1))


def _version(meta: Mapping[str, Any]) -> Mapping[str, str]:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def _without_folder_marks(files: Iterator[FileInfo], prefix: str) -> Iterator[FileInfo]:
    held: FileInfo | None = None
    for info in files:
        if held is not None and not info.path.startswith(held.path + "/"):
            yield held
        held = None
        if info.path in ("", prefix):
            continue
        if info.size_bytes:
            yield info
        else:
            held = info
    if held is not None:
        yield held


_first_user = 0


def _ensure_not_forked() -> None:
    global _first_user  # noqa: PLW0603 -- obstore's thread pool is one per process, too
    if _first_user in (0, os.getpid()):
        _first_user = os.getpid()
        return
    raise Unsupported(
        "This process was forked from one that had used an object store, whose client does not survive that",
        remedy="Start worker processes with the 'spawn' method, or before the first use",
    )

"""Processes killed by SIGKILL between two changes of the file system, or in the middle of a write.

1. A `Killer` is one warm process without threads. Modules are loaded once; each victim is a fork of it, so a kill takes
   as long as the work before it. (`killed_spark` watches and kills a family of processes in the same way.)
2. A change is a file that is created, written to, linked, renamed, removed or given a time, or a folder that is made or
   removed, below the victim's folder. Reads change nothing, so kills before each change and one after the last meet
   every state of the disk in which a process can die.
3. A victim that is killed at a write has written the first half of the bytes.
4. Nothing is synced: the machine lives on, and its cache has what a dead process wrote.
5. Nothing of the storage is wrapped: an audit hook of the interpreter and `os.write` see the changes. What native code
   writes by itself is not seen; this package lets it write nothing. (`killed_on_stores` has victims on other storages.)

Linux only: `/proc` says which file a descriptor is.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import pkgutil
import re
import signal
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from unittest import mock

import hoodie

Action = Callable[[str], object]
"""What a victim does to the folder it is given: a module-level function, or a `functools.partial` of one."""

_LIMIT_S = 120
_write = os.write  # a watch puts another in its place
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NOT_LOADED = ("hoodie.spark", "hoodie.cli", "hoodie.testing")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the file system: what is done, to which path below the folder."""

    what: str
    path: str

    def __str__(self) -> str:
        return f"{self.what} {self.path}".rstrip()

    def is_meant(self, number: int, at: int | str) -> bool:
        """Whether this change, the `number`-th, is the one that `at` says: by its number, from 1, or as the first in
        which that regular expression is found.
        """
        return number == at if isinstance(at, int) else re.search(at, str(self)) is not None


def unsynced() -> AbstractContextManager[object]:
    """Inside the block this process asks for no syncing of files."""
    return mock.patch.object(os, "fsync", _not_synced)


def _not_synced(_: int) -> None:
    pass


AFTER_ALL = Change("after the last change", "")


class Watch(ABC):
    """Hears of every change that this process makes to the file system, and hands those below some folder on.

    What it does then (`struck`) is up to the subclass; a change has not happened yet when it is told.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def install(self) -> None:
        """From now on, until the process ends; forks of it hear, too. No file is synced any more."""
        sys.addaudithook(self._heard)
        mock.patch.object(os, "write", self._written).start()
        unsynced().__enter__()

    @abstractmethod
    def folder(self) -> str | None:
        """The folder whose changes are told, absolute; None: nobody wants to hear of any."""

    @abstractmethod
    def struck(self, change: Change, last_deed: Callable[[], object] | None) -> None:
        """A change is about to happen. `last_deed` is what a process does of it that dies in the middle."""

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook."""
        look = _EVENTS.get(event)
        if look is None:
            return
        named = look(arguments)
        if named is not None:
            self._strike(event.removeprefix("os."), os.path.abspath(named), None)

    def _written(self, file: int, data: Any, /) -> int:
        """In the place of `os.write`."""
        path = os.readlink(f"/proc/self/fd/{file}")
        self._strike("write", path, lambda: _write(file, data[: len(data) // 2]))
        return _write(file, data)

    def _strike(self, what: str, path: str, last_deed: Callable[[], object] | None) -> None:
        folder = self.folder()
        if folder is not None and path.startswith(f"{folder}/"):
            with self._lock:
                self.struck(Change(what, path[len(folder) + 1 :]), last_deed)


class Countdown:
    """Counts the changes that a victim makes; at the one with number `kill_at` it dies. Without it all are told."""

    def __init__(self, kill_at: int | str | None, told: int) -> None:
        self._kill_at = kill_at
        self._told = told
        self._count = 0

    def struck(self, change: Change, last_deed: Callable[[], object] | None = None) -> None:
        """See `Watch.struck`; one change after the other."""
        self._count += 1
        if self._kill_at is not None and not change.is_meant(self._count, self._kill_at):
            return
        _tell(self._told, f"{change.what}\t{change.path}\n")
        if self._kill_at is not None:
            if last_deed is not None:
                last_deed()
            os.kill(os.getpid(), signal.SIGKILL)


Watching = Callable[[str, Countdown], object]
"""Lets a countdown hear of all that this process changes below a path from now on: a module-level function."""


def watch_files(folder: str, countdown: Countdown) -> None:
    """`Watching` of a folder on disk."""
    _Victim(folder, countdown).install()


class Killer:
    """Runs actions in victims, to their end or to their death. A context manager: its process ends with the block."""

    def __init__(self, watching: Watching = watch_files) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, watching), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()
        self._process.join(_LIMIT_S)

    def changes(self, action: Action, folder: str) -> list[Change]:
        """What `action` changes in `folder`, in order. It is done then.

        Raises:
            AssertionError: it failed.
        """
        code, told = self._run(action, folder, None)
        assert code == 0, f"the action ended with {code}: {told}"
        return _parsed(told)

    def kill(self, action: Action, folder: str, at: int | str) -> Change:
        """Before (or, of a write, in the middle of) which change of `folder` the process died: number `at`, from 1, of
        what `action` does, or the first in which the regular expression `at` is found; after all if there is none.

        Raises:
            AssertionError: it failed before.
        """
        code, told = self._run(action, folder, at)
        assert code == -signal.SIGKILL, f"the action ended with {code}, not by the kill: {told}"
        return _parsed(told)[-1] if told else AFTER_ALL

    def _run(self, action: Action, folder: str, kill_at: int | str | None) -> tuple[int, str]:
        self._connection.send((action, folder, kill_at))
        code, told = self._connection.recv()
        return int(code), str(told)


def _parsed(told: str) -> list[Change]:
    return [Change(*line.split("\t")) for line in told.splitlines()]


def _serve(connection: Any, watching: Watching) -> None:
    """Runs victims until nobody asks any more."""
    for name in _modules():
        importlib.import_module(name)
    gc.freeze()
    with suppress(EOFError):
        while True:
            connection.send(_victim(watching, *connection.recv()))


def _modules() -> Iterator[str]:
    """Every module of the package that an action may need, so that victims load none."""
    for found in pkgutil.walk_packages(hoodie.__path__, "hoodie."):
        if not found.name.startswith(_NOT_LOADED):
            yield found.name


def _victim(watching: Watching, action: Action, folder: str, kill_at: int | str | None) -> tuple[int, str]:
    """Exit code of a fork that ran `action`, and what it told: its changes, the one it died at, or its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live(watching, action, folder, kill_at, writing)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as lines:
        told = lines.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), told


def _live(watching: Watching, action: Action, folder: str, kill_at: int | str | None, told: int) -> None:
    """The life of a victim. Does not return."""
    signal.alarm(_LIMIT_S)
    code = 1
    try:
        watching(folder, Countdown(kill_at, told))
        action(folder)
        if kill_at is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        code = 0
    except BaseException:
        _tell(told, traceback.format_exc())
    finally:
        os._exit(code)


class _Victim(Watch):
    """Tells a countdown of the changes below a folder."""

    def __init__(self, folder: str, countdown: Countdown) -> None:
        super().__init__()
        self._folder = os.path.abspath(folder)
        self._countdown = countdown

    def folder(self) -> str:
        return self._folder

    def struck(self, change: Change, last_deed: Callable[[], object] | None) -> None:
        self._countdown.struck(change, last_deed)


def _tell(told: int, text: str) -> None:
    rest = text.encode()
    while rest:
        rest = rest[_write(told, rest) :]


def _opened(arguments: tuple[Any, ...]) -> str | None:
    path, _, flags = arguments
    if isinstance(path, int) or not flags & _WRITES:
        return None
    return os.fsdecode(path) if flags & os.O_TRUNC or not os.path.lexists(path) else None


def _if_there(arguments: tuple[Any, ...]) -> str | None:
    path = arguments[0]
    return os.fsdecode(path) if not isinstance(path, int) and os.path.lexists(path) else None


def _removed(arguments: tuple[Any, ...]) -> str | None:
    """What is removed: named by itself, or within the folder that is open as `dir_fd`."""
    path, folder = os.fsdecode(arguments[0]), arguments[1]
    full = path if folder < 0 else os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
    return full if os.path.lexists(full) else None


def _if_absent(arguments: tuple[Any, ...]) -> str | None:
    return None if os.path.lexists(arguments[0]) else os.fsdecode(arguments[0])


def _target(arguments: tuple[Any, ...]) -> str | None:
    return os.fsdecode(arguments[1])


_EVENTS: dict[str, Callable[[tuple[Any, ...]], str | None]] = {
    "open": _opened,
    "os.link": _target,
    "os.mkdir": _if_absent,
    "os.remove": _removed,
    "os.rename": _target,
    "os.rmdir": _removed,
    "os.truncate": _if_there,
    "os.utime": _if_there,
}
"""Which path an event of the interpreter changes; None when it changes none."""

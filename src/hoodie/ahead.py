"""Work that threads do while the caller works at what came before it.

1. Results come in the order in which they were asked for, then the error, if there was one.
2. Threads are ahead by a few results at most: memory does not grow with their number.
3. They stop when nobody wants the results any more, and have ended when the block or the iterator that began them has.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from queue import Full, Queue
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MADE_AHEAD = 4
_POLL_SECONDS = 0.1


class _Ahead(Generic[R]):
    """What `make` gives, made by a thread of `pool` until `stopped` is set, into a queue that is short on purpose. Its
    last entry is None or the error.
    """

    def __init__(self, pool: ThreadPoolExecutor, make: Callable[[], Iterator[R]], stopped: threading.Event) -> None:
        self._queue: Queue[R | BaseException | None] = Queue(MADE_AHEAD)
        self._stopped = stopped
        pool.submit(self._fill, make)

    def results(self) -> Iterator[R]:
        """What the thread makes, until it is through; then its error, if it had one."""
        while (entry := self._queue.get()) is not None:
            if isinstance(entry, BaseException):
                raise entry
            yield entry

    def _fill(self, make: Callable[[], Iterator[R]]) -> None:
        try:
            for result in make():
                if not self._put(result):
                    return
            self._put(None)
        except BaseException as error:  # whatever it is, it belongs to the one who asked for the results
            self._put(error)

    def _put(self, entry: R | BaseException | None) -> bool:
        """Whether the entry found a place before nobody wanted it any more."""
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False


@contextmanager
def made_ahead(make: Callable[[], Iterator[R]]) -> Iterator[Iterator[R]]:
    """What `make` gives, made by a thread of its own."""
    with closing(all_made_ahead((make,), 1)) as results:
        yield next(results)


def all_made_ahead(makes: Iterable[Callable[[], Iterator[R]]], threads: int) -> Generator[Iterator[R], None, None]:
    """What each of `makes` gives, made by so many threads at the same time. As many more wait for a thread, so that
    none has to wait for the caller.
    """
    stopped = threading.Event()
    waiting = iter(makes)
    begun: deque[_Ahead[R]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="hoodie-ahead") as pool:
        try:
            while True:
                for make in islice(waiting, 2 * threads - len(begun)):
                    begun.append(_Ahead(pool, make, stopped))
                if not begun:
                    return
                yield begun.popleft().results()
        finally:
            stopped.set()


def done_ahead(work: Callable[[T], R], items: Iterable[T], threads: int) -> Generator[R, None, None]:
    """What `work` makes of each item, by so many threads. Items are taken by the caller's thread."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="hoodie-ahead") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

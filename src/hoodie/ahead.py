"""Work that threads do while the caller works at what came before it.

1. Results come in the order in which they were asked for, then the error, if there was one.
2. Threads are ahead by a few results at most: memory does not grow with their number.
3. They stop when nobody wants the results any more, and have ended when the block or the iterator that began them has.
   A program that ends does not wait for those of an iterator that it left where it was.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from queue import Full, Queue, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MADE_AHEAD = 4
_POLL_SECONDS = 0.1


class _Ahead(Generic[R]):
    """What `make` gives, made by a thread until `stopped` is set, into a queue that is short on purpose. Its last entry
    is None or the error.
    """

    def __init__(self, make: Callable[[], Iterator[R]], stopped: threading.Event) -> None:
        self._queue: Queue[R | BaseException | None] = Queue(MADE_AHEAD)
        self._make = make
        self._stopped = stopped

    def results(self) -> Iterator[R]:
        """What the thread makes, until it is through; then its error, if it had one."""
        while (entry := self._queue.get()) is not None:
            if isinstance(entry, BaseException):
                raise entry
            yield entry

    def fill(self) -> None:
        """Makes all of it. This is what the thread does."""
        if self._stopped.is_set():
            return
        try:
            for result in self._make():
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


class _Workers:
    """Threads that do what they are given, first come, first served. The interpreter does not wait for them: an
    iterator that a script leaves where it is never ends them.
    """

    def __init__(self, threads: int) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"hoodie-ahead-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def give(self, work: Callable[[], None]) -> None:
        """Has it done by the next thread that is free."""
        self._work.put(work)

    def end(self) -> None:
        """Waits until all that was given is done, and the threads have ended."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            if not sys.is_finalizing():  # they may be gone without a word
                thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


@contextmanager
def made_ahead(make: Callable[[], Iterator[R]]) -> Iterator[Iterator[R]]:
    """What `make` gives, made by a thread of its own."""
    with closing(all_made_ahead((make,), 1)) as results:
        yield next(results)


def all_made_ahead(makes: Iterable[Callable[[], Iterator[R]]], threads: int) -> Generator[Iterator[R], None, None]:
    """What each of `makes` gives, made by so many threads at the same time. As many more wait for a thread, so that
    none has to wait for the caller. Each has to be taken to its end before the next is asked for.
    """
    stopped = threading.Event()
    waiting = iter(makes)
    begun: deque[_Ahead[R]] = deque()
    workers = _Workers(threads)
    try:
        while True:
            for make in islice(waiting, 2 * threads - len(begun)):
                begun.append(_Ahead(make, stopped))
                workers.give(begun[-1].fill)
            if not begun:
                return
            yield begun.popleft().results()
    finally:
        stopped.set()
        workers.end()


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

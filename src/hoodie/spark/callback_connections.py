"""Connections by which threads of the JVM call Python objects, closed when those threads have ended.

py4j opens one for each such thread and keeps it for good: two sockets, a Python thread and half a megabyte. Spark runs
every query whose result goes to Python as Arrow in a thread of its own, so a stream of small commits, or a service that
calls `toPandas` all day, would come to the limit of open files. Closing is safe: whoever could use the connection is
gone, and py4j itself opens another where one is closed.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

log = logging.getLogger(__name__)

_SERVER = "GATEWAY_SERVER"
"""py4j's name for the JVM's half of a gateway."""

_MAX_CHECKED: Final = 32


@dataclass(frozen=True, slots=True)
class _Noted:
    """Java objects: py4j's client of this process, its connection, and the thread that calls by it."""

    client: Any
    connection: Any
    thread: Any


_noted: deque[_Noted] = deque()
_callers = threading.local()


def note_caller(gateway: Any) -> None:
    """For methods that the JVM calls: remembers by which connection, once for each. Costs four calls the first time."""
    if getattr(_callers, "is_noted", False):
        return
    _callers.is_noted = True
    try:
        client = JavaObject(_SERVER, gateway._gateway_client).getCallbackClient()
        connection = client.getPerThreadConnection()
        if (
            connection is not None and connection.isInitiatedFromClient()
        ):  # else Python opened it for a thread of its own
            _noted.append(_Noted(client, connection, gateway.jvm.java.lang.Thread.currentThread()))
    except Py4JError:
        log.debug("a connection of py4j stays open", exc_info=True)


def close_ended() -> None:
    """Closes the connections of threads that have ended. Costs a call for each thread that has not, of which only some
    are looked at: Spark's pools may have hundreds, which end when they were idle for a minute.
    """
    for _ in range(min(len(_noted), _MAX_CHECKED)):
        try:
            one = _noted.popleft()
        except IndexError:  # another thread took it
            return
        try:
            if one.thread.isAlive():
                _noted.append(one)
            else:
                one.connection.shutdown()
                one.client.connectionStopped(one.connection)
        except Py4JError:  # the JVM has gone, and the connection with it
            log.debug("a connection of py4j was not closed", exc_info=True)

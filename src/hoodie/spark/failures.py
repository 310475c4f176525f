"""Errors of `hoodie` on their way through the JVM.

A Python error that is raised in a worker or in a callback reaches the caller as a Java exception with text. `hoodie`
errors take their kind, cause and facts along in that text, and come out as what they were:

1. What travels is JSON, never a pickle: the text of an exception may hold anybody's data.
2. A file of a table that Spark's own reader cannot read is `Corrupt`; files of others are none of our business.
3. Other errors stay what Spark makes of them, except where `translated` is asked.
"""

from __future__ import annotations

import base64
import functools
import json
import logging
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from hoodie.errors import Corrupt, HudiError, Unavailable

log = logging.getLogger(__name__)

_MARK = re.compile(r"hoodie-error\[([A-Za-z0-9_=-]+)\]")
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] .*?reading file (\S+?\.parquet)\.\s", re.DOTALL)
_MAX_CAUSES = 12
_MAX_CHARACTERS = 400
_WORKER_LOST = ("Python worker exited unexpectedly", "Python worker failed to connect", "ExecutorLostFailure")


_roots: set[str] = set()


class ErrorInTransit(RuntimeError):
    """Carries a `HudiError` through the JVM as text."""


def raise_through_jvm(error: HudiError) -> NoReturn:
    """Raises something whose text survives the JVM and is turned back by `install` or `translated`."""
    raise ErrorInTransit(f"{error} {to_text(error)}") from error


@contextmanager
def through_jvm() -> Iterator[None]:
    """Errors of ours that leave the block, or the function it decorates, reach the caller of the query."""
    try:
        yield
    except HudiError as error:
        raise_through_jvm(error)


def to_text(error: HudiError) -> str:
    """`error` as a token without spaces; facts become text."""
    facts = {name: str(fact) for name, fact in error.facts.items()}
    record = [type(error).__name__, error.cause, error.remedy, facts]
    return f"hoodie-error[{base64.urlsafe_b64encode(json.dumps(record).encode()).decode()}]"


def from_text(text: str) -> HudiError | None:
    """The error whose token stands in `text`, if there is one."""
    found = _MARK.search(text)
    if found is None:
        return None
    try:
        name, cause, remedy, facts = json.loads(base64.urlsafe_b64decode(found.group(1)))
        if not str(name)[:1].isupper():
            return None
        kind = _kinds().get(name, HudiError)
        return kind(str(cause), remedy=None if remedy is None else str(remedy), **facts)
    except (ValueError, TypeError):
        return None


def _kinds() -> dict[str, type[HudiError]]:
    """Errors of ours by name, those of any room that was loaded, too."""
    found, ahead = dict[str, type[HudiError]](), [HudiError]
    while ahead:
        kind = ahead.pop()
        if kind.__module__.startswith("hoodie."):
            found.setdefault(kind.__name__, kind)
        ahead += kind.__subclasses__()
    return found


def watch(root: str) -> None:
    """Files below `root`, a URI or path, are a table's: Spark's failures to read them become `Corrupt`."""
    _roots.add(_without_scheme(root).rstrip("/") + "/")


def install() -> None:
    """Makes PySpark raise our errors instead of its wrappers around them. Process-wide, idempotent.

    `convert_exception` is where PySpark itself turns Java exceptions into Python ones. Where a version has no such
    function our errors stay wrapped, with their text in the message.
    """
    try:
        from pyspark.errors.exceptions import captured  # noqa: PLC0415 - not every session and worker has to load it
    except ImportError:
        return
    original = getattr(captured, "convert_exception", None)
    if original is None or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def convert(exception: Any) -> Any:
        return _of_java(exception) or original(exception)

    captured.convert_exception = convert  # type: ignore[assignment]


@contextmanager
def translated(step: str) -> Iterator[None]:
    """Inside, whatever a Spark job raises comes out as a `HudiError`; other Python errors pass."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - not every session and worker has to load it
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not every session and worker has to load it

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        ours = from_text(text)
        if ours is not None:
            raise ours from None
        # Java's own text has many thousands of characters, and Python would show it above ours.
        log.debug("Spark failed in step '%s'", step, exc_info=True)
        if any(sign in text for sign in _WORKER_LOST):
            raise Unavailable(
                f"Spark lost a Python worker in step '{step}'",
                remedy="Its memory may not have sufficed: give workers more, or lower spark.executor.cores",
                step=step,
            ) from None
        raise HudiError(f"Spark failed in step '{step}': {_essence(text)}", step=step) from None


def _of_java(exception: Any) -> HudiError | None:
    """The error of ours that a Java exception, or one of its causes, stands for."""
    try:
        texts: list[str] = []
        while exception is not None and len(texts) < _MAX_CAUSES:
            texts.append(str(exception.toString()))
            exception = exception.getCause()
    except Exception:  # the JVM may be gone: let PySpark say so
        return None
    ours = next((found for text in texts if (found := from_text(text)) is not None), None)
    return ours or _unreadable(texts)


def _unreadable(texts: Sequence[str]) -> Corrupt | None:
    for text in texts:
        found = _UNREADABLE.search(text)
        if found is None:
            continue
        path = _without_scheme(urllib.parse.unquote(found[2]))
        if not any(path.startswith(root) for root in _roots):
            return None
        if found[1] == "FILE_NOT_EXIST":
            why, remedy = (
                "is gone",
                "It was cleaned while it was read: load the table again; else restore it from a copy",
            )
        else:
            why = f"cannot be read: {_essence(texts[-1].partition(': ')[2] or texts[-1])}"
            remedy = "Restore it from a copy, or roll the table back to before the commit that wrote it"
        return Corrupt(f"Base file {path} {why}", remedy=remedy, path=path)
    return None


def _without_scheme(uri: str) -> str:
    """A local path as people write it: Spark says `file:/a` for `/a`."""
    return re.sub(r"^file:/+", "/", uri)


def _essence(text: str) -> str:
    """The line of a long Spark message that names the error: the last of a Python traceback, else the first; its
    beginning, where it is long itself.
    """
    lines = [line for line in text.splitlines() if line.strip()] or ["no message"]
    start = next((n for n, line in enumerate(lines) if line.lstrip().startswith("Traceback")), None)
    after = () if start is None else (line for line in lines[start + 1 :] if not line.startswith(" "))
    found = next(iter(after), lines[0]).strip()
    return found if len(found) <= _MAX_CHARACTERS else f"{found[:_MAX_CHARACTERS]} ..."

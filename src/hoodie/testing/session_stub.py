"""A Spark session that only knows its settings, for tests without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any


class _JavaMap(dict[str, str]):
    """What is asked of a map of the JVM."""

    def isEmpty(self) -> bool:
        """Whether it has no entry."""
        return not self


def SessionWith(conf: Mapping[str, str], hadoop: Mapping[str, str] | None = None) -> Any:
    """A session with these settings, and these of its Hadoop configuration."""
    everything = SimpleNamespace(mkString=lambda between: between.join(f"{name} -> {conf[name]}" for name in conf))

    def with_prefix(prefix: str) -> _JavaMap:
        named = hadoop or {}
        return _JavaMap({name.removeprefix(prefix): named[name] for name in named if name.startswith(prefix)})

    return SimpleNamespace(
        _jsparkSession=SimpleNamespace(
            conf=lambda: SimpleNamespace(getAll=lambda: everything),
            sessionState=lambda: SimpleNamespace(
                newHadoopConf=lambda: SimpleNamespace(getPropsWithPrefix=with_prefix),
            ),
        )
    )

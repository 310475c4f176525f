"""A Spark session that only knows its settings, for tests without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any


def SessionWith(conf: Mapping[str, str], hadoop: Mapping[str, str] | None = None) -> Any:
    """A session with these settings, and these of its Hadoop configuration."""
    everything = SimpleNamespace(mkString=lambda between: between.join(f"{name} -> {conf[name]}" for name in conf))

    def with_prefix(prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): (hadoop or {})[name] for name in hadoop or {} if name.startswith(prefix)}

    return SimpleNamespace(
        _jsparkSession=SimpleNamespace(
            conf=lambda: SimpleNamespace(getAll=lambda: everything),
            sessionState=lambda: SimpleNamespace(
                newHadoopConf=lambda: SimpleNamespace(getPropsWithPrefix=with_prefix),
            ),
        )
    )

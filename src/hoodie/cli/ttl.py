"""`hoodie ttl`: delete partitions that are older than hoodie.partition.ttl.strategy.days.retain."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import hoodie
from hoodie.cli.facts import commit_row
from hoodie.cli.service import add_service, run_service


def define(parser: ArgumentParser) -> None:
    add_service(parser)


def run(said: Namespace) -> int:
    return run_service(
        said,
        "ttl",
        _expire,
        lambda table: table.preview("ttl"),
        "no partition has expired",
    )


class _Deleted:
    """The commit that deleted partitions, as a result of a service."""

    def __init__(self, committed: Any) -> None:
        self._committed = committed

    def as_json(self) -> dict[str, Any]:
        return commit_row(self._committed)


def _expire(table: hoodie.Table) -> _Deleted | None:
    committed = table.ttl()
    return None if committed is None else _Deleted(committed)

"""A table in a few facts: where it is, how it is keyed, when it was written last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from hoodie.present.forms import Form

if TYPE_CHECKING:
    from hoodie.spec import TableConfig
    from hoodie.timeline import Timeline


class OpenTable(Protocol):
    """What is asked of a `hoodie.Table`, which is above presentation."""

    @property
    def uri(self) -> str: ...
    @property
    def config(self) -> TableConfig: ...
    def timeline(self) -> Timeline: ...


def _json(table: OpenTable) -> dict[str, Any]:
    config, last = table.config, table.timeline().last_completed_write()
    return {
        "path": table.uri,
        "type": config.table_type,
        "version": config.table_version,
        "record_key": ", ".join(config.record_key_fields) or "made by the writer",
        "partitions": ", ".join(config.partition_fields) or "none",
        "ordering": ", ".join(config.ordering_fields) or "by commit",
        "last_write": "none" if last is None else f"{last.requested} ({last.action})",
    }


_TABLE: Form[OpenTable] = Form(_json, lambda table: f"Hudi table {table.config.name}")

FORMS: Final = {"Table": _TABLE}

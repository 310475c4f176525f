"""The Avro schema of change-data blocks, in the three modes of supplemental logging.

1. OP_KEY_ONLY has the operation and the key; DATA_BEFORE adds the row before; DATA_BEFORE_AFTER has the instant and
   both rows instead of the key. Rows are without Hudi's meta columns.
2. The text is Hudi 1.2's for the same table; 0.15's differs in documentation strings only.

It does not know bytes or files. Examples: `docs/format/log-files.md`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from hoodie.errors import Invalid

OP_KEY_ONLY: Final = "OP_KEY_ONLY"
DATA_BEFORE: Final = "DATA_BEFORE"
DATA_BEFORE_AFTER: Final = "DATA_BEFORE_AFTER"

_KEY_ONLY: Final = {
    "type": "record",
    "name": "Record",
    "fields": [{"name": "op", "type": ["string", "null"]}, {"name": "record_key", "type": ["string", "null"]}],
}


def parse_logging_mode(text: str) -> str:
    """The mode in Hudi's upper-case spelling.

    Raises:
        Invalid: there is no such mode.
    """
    mode = text.upper()
    if mode not in (OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER):
        raise Invalid(
            f"There is no change logging mode {text!r}",
            remedy=f"Choose {DATA_BEFORE_AFTER}, {DATA_BEFORE} or {OP_KEY_ONLY}",
        )
    return mode


def change_schema(mode: str, record: str) -> str:
    """JSON text of the schema; `record` is the table's Avro record schema as JSON text, with its namespace."""
    if mode == OP_KEY_ONLY:
        return json.dumps(_KEY_ONLY, separators=(",", ":"))
    row: dict[str, Any] = json.loads(record)
    namespace = row.pop("namespace", None)
    texts = ("op", "record_key") if mode == DATA_BEFORE else ("op", "ts_ms")
    fields = [_optional(name, "string") for name in texts]
    fields.append(_optional("before", row))
    if mode == DATA_BEFORE_AFTER:
        fields.append(_optional("after", row["name"]))
    made = {"type": "record", "name": "CDC", "namespace": namespace, "doc": "", "fields": fields}
    return json.dumps({key: value for key, value in made.items() if value is not None}, separators=(",", ":"))


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "doc": "", "default": None}

"""Which record keys a condition asks for, when it names them all.

1. `_hoodie_record_key` compared with constants names keys; so do the key columns when each of them is compared with
   constants.
2. A key of one column is its text; a key of several, and in some tables of one (complex key generator), is
   `name:text,name:text`. Where a table may have either form both are asked for.
3. Only columns whose text is the same in every writer count: texts, whole numbers, booleans, dates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from hoodie.records import KEY_FIELD
from hoodie.records.condition import Comparison, Condition
from hoodie.spec import TableConfig
from hoodie.spec.table_config import USER_PROVIDED

MAX_KEYS: Final = 1_000_000
MAX_COMBINED: Final = 10_000


def asked_keys(conditions: Sequence[Condition], config: TableConfig, schema: pa.Schema) -> list[str] | None:
    """The record keys that rows must have to meet all conditions; None when they do not say, or name too many.

    `schema` has the columns of the table.
    """
    direct = asked_values(conditions, KEY_FIELD, pa.string())
    if direct is not None:
        return direct
    fields = config.record_key_fields
    if not fields or config.keygen_type == USER_PROVIDED:
        return None
    texts: list[list[str]] = []
    for name in fields:
        at = schema.get_field_index(name)
        found = None if at < 0 else asked_values(conditions, name, schema.field(at).type)
        if not found:
            return None
        texts.append(found)
    keys = combined_keys(fields, texts)
    return keys if keys is None or len(fields) > 1 else keys + texts[0]


def combined_keys(fields: Sequence[str], texts: Sequence[Sequence[str]]) -> list[str] | None:
    """The keys, as `name:text,name:text`, whose fields have one of some texts each; None when they are too many."""
    if math.prod(map(len, texts)) > MAX_COMBINED:
        return None
    named = [[f"{name}:{text}" for text in found] for name, found in zip(fields, texts, strict=True)]
    return [",".join(parts) for parts in itertools.product(*named)]


def constant_texts(values: pa.Array, data_type: pa.DataType) -> list[str] | None:
    """The constants as keys spell them; None when they are not of the column's type or it has several spellings."""
    if not values.type.equals(data_type) or len(values) > MAX_KEYS or not has_one_spelling(data_type):
        return None
    texts: list[str] = values.drop_null().cast(pa.string()).to_pylist()
    return None if "" in texts else texts


def has_one_spelling(data_type: pa.DataType, *, with_texts: bool = True) -> bool:
    """Whether the text of such a value is the same in every writer. All but those of texts are without commas."""
    types = pa.types
    is_plain = types.is_integer(data_type) or types.is_boolean(data_type) or types.is_date32(data_type)
    return is_plain or (with_texts and types.is_string(data_type))


def asked_values(conditions: Sequence[Condition], column: str, data_type: pa.DataType) -> list[str] | None:
    """The constants a column must be one of to meet all conditions, as keys spell them; None when they do not say."""
    for one in conditions:
        if isinstance(one, Comparison) and one.column == column and not one.function and one.operator in ("=", "in"):
            return constant_texts(one.values, data_type)
    return None

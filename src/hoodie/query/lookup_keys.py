"""The keys of a look-up, in the forms people have them, as the texts a table has in `_hoodie_record_key`.

1. A text is taken as it stands there (`k1`, `id:1,name:x`).
2. Other values are values of the key fields: their types are made the fields' (a float `1.0` is the int 1), and the
   text is the one the table's key generator makes.
3. Keys of several fields are tuples in the fields' order, mappings, or rows of a frame that has these columns.
4. Where tables differ in how they write a key (timestamps, a single field of a COMPLEX key), all its spellings count.
5. NULL, empty text and (of text keys) NaN are no keys: no write stores them. Among others they are left out, as by an
   IN of SQL; a look-up of nothing else is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.columns import decoded
from hoodie.records.java_text import AVRO_TEXT, TextForm, ensure_text, java_text
from hoodie.records.record_keys import joined_keys
from hoodie.records.schema import is_text
from hoodie.spec import TableConfig

_REMEDY = "Pass texts, values of the key field, or for several fields tuples, mappings or a frame of these columns"


@dataclass(frozen=True, slots=True, eq=False)
class LookupKeys:
    """Keys of a look-up: texts as tables store them, or `columns`, one array of values per key field."""

    texts: pa.Array | None
    columns: tuple[pa.Array, ...] = ()

    @property
    def has_texts_only(self) -> bool:
        """Whether the types of the table's columns do not matter."""
        return self.texts is not None


def lookup_keys(keys: Any, fields: Sequence[str]) -> LookupKeys:
    """`keys` of a table whose key is made of `fields`: one or many, as said above.

    Raises:
        Invalid: they cannot be keys.
    """
    try:
        return _parsed(keys, tuple(fields))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"Not a list of record keys: {error}", remedy=_REMEDY) from error


def key_texts(keys: LookupKeys, config: TableConfig, types: Mapping[str, pa.DataType]) -> pa.StringArray:
    """The distinct texts of `keys`; `types` are those of the key fields, where they are known.

    Raises:
        Invalid: a value is none of its field's, all fields of a key are NULL, or there is no key among the values.
    """
    found = _spellings(keys, config, types)
    texts = found.filter(pc.not_equal(found, ""))  # which is NULL, so no, of a NULL
    if len(found) and not len(texts):
        names = ", ".join(config.record_key_fields) or "record key"
        raise Invalid(
            f"NULL, NaN and empty text are no record keys: no row has one in {names}",
            remedy=_REMEDY,
            columns=config.record_key_fields,
        )
    return texts.unique()


def _spellings(keys: LookupKeys, config: TableConfig, types: Mapping[str, pa.DataType]) -> pa.StringArray:
    """The texts of all keys, NULL where a single value is, each as often as it was given."""
    if keys.texts is not None:
        return keys.texts
    fields = config.record_key_fields
    values = [
        _typed(column, types.get(name), name)
        for name, column in zip(fields or ("_hoodie_record_key",), keys.columns, strict=True)
    ]
    forms = [AVRO_TEXT]
    if any(pa.types.is_timestamp(column.type) for column in values):
        forms.append(TextForm("sql"))
    found = []
    for form in forms:
        parts = [java_text(column, form) for column in values]
        if len(parts) == 1:
            found.append(parts[0])
            if config.keygen_type == "COMPLEX":
                found.append(joined_keys([parts[0].filter(pc.not_equal(parts[0], ""))], fields))
        else:
            found.append(joined_keys(parts, fields))
    return pa.concat_arrays(found)


def _parsed(keys: Any, fields: tuple[str, ...]) -> LookupKeys:
    if isinstance(keys, Mapping):
        keys = [keys]
    elif isinstance(keys, pa.Scalar):
        keys = pa.array([keys.as_py()], keys.type)
    frame = _frame(keys)
    if frame is not None:
        return LookupKeys(None, tuple(_of_frame(frame, name) for name in fields))
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        return _of_values(keys, fields)
    if isinstance(keys, np.ndarray) and not keys.ndim:
        keys = keys[()]
    if isinstance(keys, str | bytes | np.generic) or not isinstance(keys, Iterable):
        return _of_values(pa.array([keys]), fields)
    items = list(keys)
    if isinstance(keys, tuple) and len(fields) > 1 and not all(_is_text(item, fields) for item in items):
        items = [keys]
    if items and all(isinstance(item, Mapping) for item in items):
        _ensure_fields(fields)
        return LookupKeys(None, tuple(pa.array([_part(item, name) for item in items]) for name in fields))
    if items and all(isinstance(item, tuple) for item in items):
        wrong = next((item for item in items if len(item) != len(fields)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} has not one value for each of the key fields {', '.join(fields)}")
        return LookupKeys(None, tuple(pa.array(list(column)) for column in zip(*items, strict=True)))
    return _of_values(pa.array(items), fields)


def _frame(keys: Any) -> pa.Table | None:
    """The keys as a table, if they are a frame of any library."""
    if isinstance(keys, pa.Table):
        return keys
    if isinstance(keys, pa.RecordBatch):
        return pa.Table.from_batches([keys])
    if not hasattr(keys, "columns"):
        return None
    if type(keys).__module__.startswith("pandas."):
        return pa.Table.from_pandas(keys, preserve_index=False)
    return pa.table(keys) if hasattr(keys, "__arrow_c_stream__") else None


def _of_frame(frame: pa.Table, name: str) -> pa.Array:
    if frame.column_names.count(name) != 1:
        raise ValueError(f"the frame has no column {name!r}, it has {', '.join(frame.column_names)}")
    return _whole(frame.column(name))


def _of_values(values: pa.Array | pa.ChunkedArray, fields: tuple[str, ...]) -> LookupKeys:
    array = _whole(values)
    if is_text(array.type):
        return LookupKeys(array.cast(pa.string()))
    if pa.types.is_null(array.type):
        return LookupKeys(array.cast(pa.string()))
    if pa.types.is_struct(array.type) and not array.null_count:
        return LookupKeys(None, tuple(_of_frame(pa.Table.from_struct_array(array), name) for name in fields))
    if pa.types.is_nested(array.type):
        raise TypeError(f"{array.type} is no key")
    if len(fields) > 1:
        raise ValueError(f"the key is made of {', '.join(fields)}, and there are single values")
    return LookupKeys(None, (array,))


def _typed(values: pa.Array, kind: pa.DataType | None, name: str) -> pa.Array:
    """`values` in the type the table has, so that their text is the table's. Texts stay what they are."""
    ensure_text(values.type, name, "Key")
    if kind is None or values.type.equals(kind) or pa.types.is_string(values.type):
        return values
    if pa.types.is_string(kind):
        is_number = pa.types.is_floating(values.type)
        return java_text(pc.if_else(pc.is_nan(values), None, values) if is_number else values)
    try:
        return values.cast(kind)
    except (pa.ArrowException, ValueError) as error:
        raise Invalid(
            f"Keys of type {values.type} are not all values of the key field {name}, a {kind}: {error}",
            remedy="Pass values of the field's type, or texts as they stand in _hoodie_record_key",
            column=name,
        ) from error


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return decoded(array)


def _is_text(item: Any, fields: tuple[str, ...]) -> bool:
    """Whether an item of a tuple is a whole key, not the value of a field."""
    return isinstance(item, Mapping | tuple) or (isinstance(item, str) and item.startswith(f"{fields[0]}:"))


def _ensure_fields(fields: tuple[str, ...]) -> None:
    if not fields:
        raise ValueError("the table makes its keys itself, they have no fields")


def _part(key: Mapping[str, Any], name: str) -> Any:
    if name not in key:
        raise ValueError(f"{dict(key)!r} has no {name!r}")
    return key[name]

"""Random Avro record schemas and rows, written by a plain encoder that uses every freedom the format leaves.

1. A value is held as Avro sees it: numbers for dates and times, unscaled numbers for decimals, and `Chosen` where a
   union says which branch a value is of.
2. `encode` splits arrays into several blocks, with and without sizes, if it is given a `Random`; without one it writes
   what `encode_rows` promises.
3. `plain` is the value another Avro library reads under `without_logical(schema)`, `arrow` what a column shows.
"""

from __future__ import annotations

import string
import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any

Schema = Any
Value = Any

_LOGICAL = {
    "int": ["date", "time-millis"],
    "long": ["timestamp-micros", "timestamp-millis", "local-timestamp-micros", "local-timestamp-millis", "time-micros"],
}
_SIMPLE = ["boolean", "int", "long", "float", "double", "string", "bytes"]
_DIGITS = Context(prec=40)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value of a union: which branch, and the value in it."""

    branch: int
    value: Value


class RandomAvro:
    """Schemas and values drawn from one seed."""

    def __init__(self, seed: int, *, longest: int = 4) -> None:
        self.chance = Random(seed)
        self._longest = longest
        self._types: dict[str, Schema] = {}
        self._count = 0

    def record(self, fields: int, depth: int = 3) -> Schema:
        """A record schema; types lie at most `depth` deep in each other."""
        name = self._name("r")
        types = [self.type(depth - 1) for _ in range(fields)]
        made: Schema = {
            "type": "record",
            "name": name,
            "fields": [{"name": f"f{at}", "type": field} for at, field in enumerate(types)],
        }
        self._types[name] = made
        return made

    def type(self, depth: int) -> Schema:
        """Any type."""
        kinds = ["simple"] * 4 + ["logical", "decimal", "fixed", "enum", "optional", "optional", "wider", "null"]
        if depth > 0:
            kinds += ["record", "array", "array", "map", "union", "optional", "named"]
        return getattr(self, f"_{self.chance.choice(kinds)}")(depth)

    def value(self, schema: Schema) -> Value:
        """Any value of a type."""
        draw = self.chance
        if isinstance(schema, list):
            branch = draw.randrange(len(schema))
            return Chosen(branch, self.value(schema[branch]))
        schema = self._types.get(schema, schema) if isinstance(schema, str) else schema
        kind = kind_of(schema)
        if is_decimal(schema):
            return draw.randrange(-(10 ** schema["precision"]) + 1, 10 ** schema["precision"]) // 10 ** draw.randrange(
                schema["precision"]
            )
        match kind:
            case "null":
                return None
            case "boolean":
                return draw.random() < 0.5
            case "int":
                return draw.randrange(-(2**31), 2**31) >> draw.randrange(32)
            case "long":
                return draw.randrange(-(2**63), 2**63) >> draw.randrange(64)
            case "float":
                return struct.unpack("<f", struct.pack("<f", draw.uniform(-1e6, 1e6)))[0]
            case "double":
                return draw.uniform(-1e300, 1e300)
            case "string":
                return "".join(draw.choices(string.ascii_letters + "äß€𝄞", k=self._length(80)))
            case "bytes":
                return draw.randbytes(self._length(80))
            case "fixed":
                return draw.randbytes(schema["size"])
            case "enum":
                return draw.choice(schema["symbols"])
            case "array":
                return [self.value(schema["items"]) for _ in range(self._length(self._longest))]
            case "map":
                return {f"k{at}": self.value(schema["values"]) for at in range(self._length(self._longest))}
        return {field["name"]: self.value(field["type"]) for field in schema["fields"]}

    def encode(self, schema: Schema, value: Value, chance: Random | None = None) -> bytes:
        """Avro binary of a value."""
        if isinstance(schema, list):
            branch = value.branch if chance else self._widest(schema, value.branch)
            return number(branch) + self.encode(schema[branch], value.value, chance)
        schema = self._types.get(schema, schema) if isinstance(schema, str) else schema
        kind = kind_of(schema)
        if is_decimal(schema):
            return _decimal_bytes(schema, value)
        match kind:
            case "null":
                return b""
            case "boolean":
                return bytes((value,))
            case "int" | "long":
                return number(value)
            case "float":
                return struct.pack("<f", value)
            case "double":
                return struct.pack("<d", value)
            case "string":
                return _run(value.encode())
            case "bytes":
                return _run(value)
            case "fixed":
                return bytes(value)
            case "enum":
                return number(schema["symbols"].index(value))
            case "array":
                return blocks([self.encode(schema["items"], item, chance) for item in value], chance)
            case "map":
                entries = value.items()
                made = [
                    self.encode("string", key) + self.encode(schema["values"], item, chance) for key, item in entries
                ]
                return blocks(made, chance)
        return b"".join(self.encode(field["type"], value[field["name"]], chance) for field in schema["fields"])

    def plain(self, schema: Schema, value: Value) -> Value:
        """The value without `Chosen`; decimals as their bytes when in `fixed` or as short as can be."""
        return self._shown(schema, value, is_arrow=False)

    def arrow(self, schema: Schema, value: Value) -> Value:
        """The value as pyarrow makes a column of `from_avro`'s types from it."""
        return self._shown(schema, value, is_arrow=True)

    def _shown(self, schema: Schema, value: Value, *, is_arrow: bool) -> Value:
        if isinstance(schema, list):
            return self._shown_union(schema, value, is_arrow=is_arrow)
        schema = self._types.get(schema, schema) if isinstance(schema, str) else schema
        kind = kind_of(schema)
        if is_decimal(schema):
            size = schema.get("size") or short_size(value)
            scaled = Decimal(value).scaleb(-schema["scale"], _DIGITS)
            return scaled if is_arrow else value.to_bytes(size, "big", signed=True)
        if kind == "array":
            return [self._shown(schema["items"], item, is_arrow=is_arrow) for item in value]
        if kind == "map":
            entries = {key: self._shown(schema["values"], item, is_arrow=is_arrow) for key, item in value.items()}
            return list(entries.items()) if is_arrow else entries
        if kind == "record":
            fields = schema["fields"]
            return {f["name"]: self._shown(f["type"], value[f["name"]], is_arrow=is_arrow) for f in fields}
        return value

    def _shown_union(self, schema: Schema, value: Chosen, *, is_arrow: bool) -> Value:
        shown = self._shown(schema[value.branch], value.value, is_arrow=is_arrow)
        others = [at for at, branch in enumerate(schema) if branch != "null"]
        if not is_arrow or len(others) < 2 or value.branch not in others or _is_wider(schema):
            return shown
        return {f"member{at}": shown if other == value.branch else None for at, other in enumerate(others)}

    def _widest(self, schema: Schema, branch: int) -> int:
        if not _is_wider(schema) or schema[branch] == "null":
            return branch
        return next(at for at, name in enumerate(schema) if name in ("long", "double"))

    def _length(self, longest: int) -> int:
        return min(self.chance.randrange(longest + 1), self.chance.randrange(2 * longest + 1))

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _define(self, name: str, made: Schema) -> Schema:
        self._types[name] = made
        return made

    def _simple(self, _: int) -> Schema:
        return self.chance.choice(_SIMPLE)

    def _null(self, _: int) -> Schema:
        return "null"

    def _logical(self, _: int) -> Schema:
        kind = self.chance.choice(["int", "long"])
        return {"type": kind, "logicalType": self.chance.choice(_LOGICAL[kind])}

    def _decimal(self, _: int) -> Schema:
        precision = self.chance.randrange(1, 39)
        made = {"logicalType": "decimal", "precision": precision, "scale": self.chance.randrange(precision + 1)}
        if self.chance.random() < 0.5:
            return {"type": "bytes", **made}
        least = short_size(10**precision)
        name = self._name("fixed")
        return self._define(name, {"type": "fixed", "name": name, "size": least + self.chance.randrange(4), **made})

    def _fixed(self, _: int) -> Schema:
        name = self._name("fixed")
        return self._define(name, {"type": "fixed", "name": name, "size": self.chance.randrange(20)})

    def _enum(self, _: int) -> Schema:
        name = self._name("e")
        symbols = [f"S{at}" for at in range(1, self.chance.choice([2, 5, 100]))]
        return self._define(name, {"type": "enum", "name": name, "symbols": symbols})

    def _optional(self, depth: int) -> Schema:
        branches = ["null", self._no_union(depth)]
        self.chance.shuffle(branches)
        return branches

    def _wider(self, _: int) -> Schema:
        branches = self.chance.choice([["int", "long"], ["float", "double"], ["null", "int", "long"]])
        return self.chance.sample(branches, len(branches))

    def _union(self, depth: int) -> Schema:
        kinds = self.chance.sample(
            ["string", "long", "boolean", "array", "record", "record", "fixed"], self.chance.choice([2, 4])
        )
        chosen = [kind if kind in _SIMPLE else getattr(self, f"_{kind}")(depth) for kind in kinds]
        return self.chance.choice([["null", *chosen], [*chosen, "null"], chosen])

    def _no_union(self, depth: int) -> Schema:
        kinds = ["simple", "simple", "logical", "decimal", "fixed", "enum"]
        if depth > 0:
            kinds += ["record", "array", "map", "named"]
        return getattr(self, f"_{self.chance.choice(kinds)}")(depth - 1)

    def _record(self, depth: int) -> Schema:
        return self.record(self.chance.randrange(4), depth)

    def _array(self, depth: int) -> Schema:
        return {"type": "array", "items": self.type(depth - 1)}

    def _map(self, depth: int) -> Schema:
        return {"type": "map", "values": self.type(depth - 1)}

    def _named(self, _: int) -> Schema:
        return self.chance.choice(sorted(self._types)) if self._types else "string"


def number(value: int) -> bytes:
    """Avro's whole numbers."""
    rest = (value << 1) ^ (value >> 63)
    made = bytearray()
    while rest > 0x7F:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*made, rest])


def blocks(items: list[bytes], chance: Random | None = None) -> bytes:
    """An array of encoded items: one block, or a random division with sizes here and there."""
    made = b""
    while items:
        count = len(items) if chance is None else chance.randrange(1, len(items) + 1)
        block = b"".join(items[:count])
        has_size = chance is not None and chance.random() < 0.5
        made += (number(-count) + number(len(block)) if has_size else number(count)) + block
        items = items[count:]
    return made + b"\x00"


def short_size(value: int) -> int:
    """Fewest bytes of two's complement."""
    return (value if value >= 0 else ~value).bit_length() // 8 + 1


def kind_of(schema: Schema) -> str:
    """`record`, `array` ... or the name of a primitive type."""
    return str(schema if isinstance(schema, str) else schema["type"])


def is_decimal(schema: Schema) -> bool:
    """Whether values are decimals."""
    return isinstance(schema, dict) and schema.get("logicalType") == "decimal"


def without_logical(schema: Schema) -> Schema:
    """The schema of the bare values."""
    if isinstance(schema, list):
        return [without_logical(part) for part in schema]
    if isinstance(schema, dict):
        return {key: without_logical(part) for key, part in schema.items() if key != "logicalType"}
    return schema


def _is_wider(schema: Schema) -> bool:
    return {str(branch) for branch in schema} - {"null"} in ({"int", "long"}, {"float", "double"})


def _decimal_bytes(schema: Schema, value: int) -> bytes:
    if schema["type"] == "fixed":
        return value.to_bytes(schema["size"], "big", signed=True)
    return _run(value.to_bytes(short_size(value), "big", signed=True))


def _run(content: bytes) -> bytes:
    return number(len(content)) + content

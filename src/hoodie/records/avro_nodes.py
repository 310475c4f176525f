"""An Avro schema as a tree of nodes, each with the Arrow type its values get.

1. Types become what Spark reads them as: enums strings, `time` logical types their numbers, a union of int and long
   long, one of float and double double. A `doc` becomes the column comment.
2. A union of null and one type is that type, nullable, in either order. Any other union is a struct with one nullable
   field for each branch but null (`member0`, `member1` ...), of which at most one has a value.
3. A named type may be used many times; a type inside itself has no Arrow type and is refused.
4. A short text can describe a huge tree (each type uses the one before twice), so nodes are counted as often as they
   are used, and depth has a limit.

It does not know how values are encoded (`avro_decode.py`, `avro_encode.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, cast

import pyarrow as pa

from hoodie.errors import Corrupt, Unsupported
from hoodie.records.schema import COMMENT_KEY, is_meta, list_type, map_type

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000

Primitive = Literal["null", "boolean", "int", "long", "float", "double", "string", "bytes"]


@dataclass(frozen=True, slots=True)
class Extent:
    """What a node and all nodes below it come to.

    `min_bytes`: of its shortest value; `is_fixed`: whether every value has that length; `nodes`: how many Arrow
    arrays a column of it has at most; `depth`: levels.
    """

    min_bytes: int
    is_fixed: bool = False
    nodes: int = 1
    depth: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A primitive type; `arrow` tells its logical type."""

    kind: Primitive
    arrow: pa.DataType
    extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """Byte strings of one length, or decimals in them."""

    size_bytes: int
    arrow: pa.DataType
    extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """One of some texts."""

    symbols: tuple[str, ...]
    arrow: pa.DataType
    extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """An array of `item`, or a map, whose items are records of `key` and `value`."""

    item: Node
    arrow: pa.DataType
    extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Named fields; `arrow` is a struct with a field for each of `fields`."""

    fields: tuple[Node, ...]
    arrow: pa.StructType
    extent: Extent


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One of `branches`; `others` are the places of those that are not null, `null` the place of null if it is one."""

    branches: tuple[Node, ...]
    others: tuple[int, ...]
    null: int | None
    arrow: pa.DataType
    extent: Extent

    @property
    def has_members(self) -> bool:
        """Whether values are structs with a field for each branch."""
        return len(self.others) > 1 and pa.types.is_struct(self.arrow)


Node = Leaf | Fixed | Enum | Repeated | Record | Union


@lru_cache(maxsize=64)
def parse_nodes(text: str) -> Record:
    """The tree of an Avro record schema.

    Raises:
        Corrupt: the text is not an Avro record schema, or larger than any table's.
        Unsupported: a type contains itself, or is a VECTOR, VARIANT or BLOB.
    """
    try:
        node = _Parser().node(json.loads(text), "", 1)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _damaged(f"Not an Avro schema: {error}", text) from error
    if not isinstance(node, Record):
        raise _damaged("Not an Avro record schema", text)
    return node


def parse_nodes_of(text: str, path: str, offset: int | None = None) -> Record:
    """`parse_nodes` of the text that stands in a file (at a place of it), which the error names."""
    try:
        return parse_nodes(text)
    except Corrupt as error:
        facts = {**error.facts, "path": path, **({} if offset is None else {"offset": offset})}
        place = path if offset is None else f"{path} at {offset}"
        raise Corrupt(f"{place}: {error.cause}" if path else error.cause, remedy=error.remedy, **facts) from error


def _damaged(cause: str, text: str) -> Corrupt:
    return Corrupt(cause, remedy="The schema text in the table is damaged", schema=text[:200])


_PRIMITIVES: Final[dict[str, tuple[pa.DataType, Extent]]] = {
    "null": (pa.null(), Extent(0, is_fixed=True)),
    "boolean": (pa.bool_(), Extent(1, is_fixed=True)),
    "int": (pa.int32(), Extent(1)),
    "long": (pa.int64(), Extent(1)),
    "float": (pa.float32(), Extent(4, is_fixed=True)),
    "double": (pa.float64(), Extent(8, is_fixed=True)),
    "string": (pa.string(), Extent(1)),
    "bytes": (pa.binary(), Extent(1)),
}

_LOGICAL: Final[dict[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
}

_NOT_YET: Final = frozenset({("fixed", "vector"), ("record", "variant"), ("record", "blob")})
"""Logical types of Hudi 1.2. By their Avro types alone a vector would be read as bytes, and a write would forget all
three of them.
"""

_WIDER: Final = (
    (frozenset((pa.int32(), pa.int64())), pa.int64()),
    (frozenset((pa.float32(), pa.float64())), pa.float64()),
)


class _Parser:
    """Nodes of JSON values; remembers named types. A type that is being read is there as None."""

    def __init__(self) -> None:
        self._named: dict[str, Node | None] = {}

    def node(self, avro: Any, namespace: str, depth: int) -> Node:
        """Raises what wrong JSON raises when it is used as if it were right (`parse_nodes` says which)."""
        if depth > MAX_DEPTH:
            raise ValueError(f"types lie more than {MAX_DEPTH} deep in each other")
        node = self._node(avro, namespace, depth)
        if depth + node.extent.depth > MAX_DEPTH + 1 or node.extent.nodes > MAX_NODES:
            raise ValueError(f"more than {MAX_DEPTH} levels or {MAX_NODES} nodes")
        return node

    def _node(self, avro: Any, namespace: str, depth: int) -> Node:
        if isinstance(avro, list):
            return _union(tuple(self.node(branch, namespace, depth + 1) for branch in avro))
        if isinstance(avro, str):
            return self._named_or_primitive(avro, {}, namespace)
        kind = avro["type"]
        if isinstance(kind, dict | list):
            return self.node(kind, namespace, depth + 1)
        if kind == "array":
            return _array(self.node(avro["items"], namespace, depth + 1))
        if kind == "map":
            return _map(self.node(avro["values"], namespace, depth + 1))
        if kind in ("record", "enum", "fixed"):
            return self._definition(kind, avro, namespace, depth)
        return self._named_or_primitive(kind, avro, namespace)

    def _definition(self, kind: str, avro: dict[str, Any], namespace: str, depth: int) -> Node:
        logical = avro.get("logicalType")
        if (kind, logical) in _NOT_YET:
            raise Unsupported(
                f"The table has a column of type {str(logical).upper()}, which hoodie cannot read or write yet",
                remedy="Read and write the table with Apache Hudi 1.2",
                type=str(logical),
            )
        name = _full_name(avro["name"], avro.get("namespace", namespace))
        self._named[name] = None
        if kind == "record":
            inner = name.rpartition(".")[0]
            nodes = [self.node(field["type"], inner, depth + 1) for field in avro["fields"]]
            node: Node = _record(list(map(_arrow_field, avro["fields"], nodes)), nodes)
        elif kind == "enum":
            node = Enum(tuple(str(symbol) for symbol in avro["symbols"]), pa.string(), Extent(1))
        else:
            node = _fixed(avro)
        self._named[name] = node
        return node

    def _named_or_primitive(self, kind: str, avro: dict[str, Any], namespace: str) -> Node:
        if kind in _PRIMITIVES:
            return _leaf(kind, avro)
        name = _full_name(kind, namespace)
        found = self._named[name]
        if found is None:
            raise Unsupported(f"The Avro type {name} contains itself: tables cannot hold such columns", type=name)
        return found


def _leaf(kind: str, avro: dict[str, Any]) -> Leaf:
    arrow, extent = _PRIMITIVES[kind]
    logical = str(avro.get("logicalType"))
    if kind == "bytes" and logical == "decimal":
        arrow, extent = _decimal(avro), Extent(2)
    return Leaf(cast(Primitive, kind), _LOGICAL.get((kind, logical), arrow), extent)


def _fixed(avro: dict[str, Any]) -> Fixed:
    size = avro["size"]
    if not isinstance(size, int) or size < 0:
        raise ValueError(f"a fixed type of {size!r} bytes")
    is_decimal = avro.get("logicalType") == "decimal"
    if is_decimal and size == 0:
        raise ValueError("a decimal of no bytes")
    return Fixed(size, _decimal(avro) if is_decimal else pa.binary(), Extent(size, is_fixed=True))


def _decimal(avro: dict[str, Any]) -> pa.DataType:
    return pa.decimal128(avro["precision"], avro.get("scale", 0))


def _array(item: Node) -> Repeated:
    return Repeated(
        item, list_type(pa.field("element", item.arrow, nullable=_may_be_null(item))), _extent_of([item], 1)
    )


def _map(value: Node) -> Repeated:
    arrow = map_type(pa.field("value", value.arrow, nullable=_may_be_null(value)))
    entry = _record([arrow.key_field, arrow.item_field], [_leaf("string", {}), value])
    return Repeated(entry, arrow, _extent_of([entry], 1))


def _record(fields: list[pa.Field], nodes: list[Node]) -> Record:
    if len({field.name for field in fields}) < len(fields):
        raise ValueError("two fields of a record have the same name")
    least = sum(node.extent.min_bytes for node in nodes)
    is_fixed = all(node.extent.is_fixed for node in nodes)
    return Record(tuple(nodes), pa.struct(fields), _extent_of(nodes, least, is_fixed=is_fixed))


def _arrow_field(field: dict[str, Any], node: Node) -> pa.Field:
    name, doc = field["name"], field.get("doc")
    metadata = None if doc is None or is_meta(name) else {COMMENT_KEY: doc.encode()}
    return pa.field(name, node.arrow, nullable=_may_be_null(node), metadata=metadata)


def _union(branches: tuple[Node, ...]) -> Union:
    nulls = [at for at, branch in enumerate(branches) if pa.types.is_null(branch.arrow)]
    others = tuple(at for at in range(len(branches)) if at not in nulls)
    if not branches or len(nulls) > 1 or any(isinstance(branch, Union) for branch in branches):
        raise ValueError("a union is empty, has null twice, or has a union in it")
    least = 1 + min(branch.extent.min_bytes for branch in branches)
    arrow = _union_type([branches[at].arrow for at in others])
    return Union(branches, others, nulls[0] if nulls else None, arrow, _extent_of(branches, least))


def _union_type(types: list[pa.DataType]) -> pa.DataType:
    if len(types) < 2:
        return types[0] if types else pa.null()
    for narrow, wide in _WIDER:
        if len(types) == 2 and not any(pa.types.is_nested(member) for member in types) and set(types) == narrow:
            return wide
    return pa.struct([pa.field(f"member{at}", member) for at, member in enumerate(types)])


def _extent_of(nodes: Iterable[Node], min_bytes: int, *, is_fixed: bool = False) -> Extent:
    extents = [node.extent for node in nodes]
    return Extent(
        min_bytes,
        is_fixed,
        1 + sum(extent.nodes for extent in extents),
        1 + max((extent.depth for extent in extents), default=0),
    )


def _may_be_null(node: Node) -> bool:
    return node.null is not None if isinstance(node, Union) else pa.types.is_null(node.arrow)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"

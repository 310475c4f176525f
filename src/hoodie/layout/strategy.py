"""Storage strategies: the upper folder of a data file's place, by the file group it belongs to.

1. A strategy gives one folder name, or none; what lies below it (table, partition, file) is the same for all.
2. It is a pure function of partition and file id: base file, logs and change data of a group get one answer.
3. The strategies here are known by text. One of a caller's own is a Python class that the *caller* names
   (`hoodie.storage.strategy.classes`); a table says only its name, and nothing is imported because of a table.

It does not know roots, versions or storage. Grammar and worked examples: `docs/format/storage-layout.md`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

from hoodie.errors import Invalid, Unsupported
from hoodie.spec.hash_id import HASH_ID_SEED, hash_id, one_xxhash32

if TYPE_CHECKING:
    import pyarrow as pa

STRATEGY_CLASSES: Final = "hoodie.storage.strategy.classes"
PROTOTYPE_SEED: Final = 0x0E43_CD7A
"""Seed of the 32-bit hash in the prototype of RFC-60 (apache/hudi#6882)."""
MAX_BITS: Final = 20
_SEGMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=-]{0,63}")
_BITS: Final = re.compile(r"bits:([0-9]{1,2})((?::(?:hex|id32|id64|file))*)")
_PART: Final = re.compile(r"fileid:([0-9]{1,2}):([0-9])")
_KNOWN: Final = "hive, map, rfc60, bits:<b>[:hex][:id32|:id64][:file], fileid:<offset>:<length>, own:<name>"


@runtime_checkable
class StorageStrategy(Protocol):
    """Where the files of a group go, below a root."""

    @property
    def prefixes(self) -> tuple[str, ...] | None:
        """All folders it may give; None where there is no short list of them, so that a root has to be listed."""
        ...

    def location(self, partition: str, file_id: str) -> str:
        """The upper folder for a group: one plain name, or an empty text for none."""
        ...


@runtime_checkable
class LocatesMany(Protocol):
    """A strategy that is quicker when it is asked of many groups at once."""

    def locations(self, partitions: pa.StringArray, file_ids: pa.StringArray) -> pa.StringArray:
        """`StorageStrategy.location` of each group, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class NoPrefix:
    """No upper folder. `hive` is this in the table's own folder, `map` in a root that is chosen by partition."""

    prefixes: tuple[str, ...] | None = ("",)

    def location(self, partition: str, file_id: str) -> str:
        del partition, file_id
        return ""

    def locations(self, partitions: pa.StringArray, file_ids: pa.StringArray) -> pa.StringArray:
        import pyarrow as pa  # noqa: PLC0415 - as `locations` of a hash

        del partitions
        return pa.repeat(pa.scalar(""), len(file_ids))


@dataclass(frozen=True, slots=True)
class HashedPrefix:
    """The most significant `bits` of a hash of the group, so that one bit more halves the key range of each prefix.

    `hash`: `rfc` is the prototype's 32-bit one, `id32` and `id64` are Hudi's `HashID`. `of_file`: of the file id alone;
    else of the partition path and it, as buckets have the same file ids in every partition.
    """

    bits: int
    is_hex: bool = False
    hash: Literal["rfc", "id32", "id64"] = "rfc"
    of_file: bool = False

    @property
    def prefixes(self) -> tuple[str, ...] | None:
        return None if self.bits > MAX_BITS else tuple(self._form(number) for number in range(1 << self.bits))

    def location(self, partition: str, file_id: str) -> str:
        text = file_id if self.of_file else partition + file_id
        if self.hash == "id64":
            return self._form(hash_id(text, 64) >> 64 - self.bits)
        number = one_xxhash32(text.encode(), PROTOTYPE_SEED) if self.hash == "rfc" else hash_id(text, 32)
        return self._form(number >> 32 - self.bits)

    def locations(self, partitions: pa.StringArray, file_ids: pa.StringArray) -> pa.StringArray:
        import pyarrow as pa  # noqa: PLC0415 - loads much that who reads properties or a few files can spare
        import pyarrow.compute as pc  # noqa: PLC0415 - as above

        from hoodie.records import xxhash32  # noqa: PLC0415 - as above

        texts = file_ids if self.of_file else pc.binary_join_element_wise(partitions, file_ids, "")
        if self.hash == "id64":
            return pa.array(
                [self._form(hash_id(text, 64) >> 64 - self.bits) for text in texts.to_pylist()], pa.string()
            )
        numbers = xxhash32(texts, PROTOTYPE_SEED if self.hash == "rfc" else HASH_ID_SEED) >> 32 - self.bits
        forms = pa.array(numbers).dictionary_encode()
        return pa.array([self._form(number) for number in forms.dictionary.to_pylist()]).take(forms.indices)

    def _form(self, number: int) -> str:
        return f"{number:0{self.bits // 4}x}" if self.is_hex else f"{number:0{self.bits}b}"


@dataclass(frozen=True, slots=True)
class FileIdPart:
    """Characters of the file id itself, which a Hadoop mount table can find as well: for readers on the JVM."""

    offset: int
    length: int
    prefixes: tuple[str, ...] | None = None

    def location(self, partition: str, file_id: str) -> str:
        del partition
        return file_id[self.offset : self.offset + self.length].replace(".", "-") or "-"


@dataclass(frozen=True, slots=True)
class OwnStrategy:
    """A strategy of the caller's own, whose answers are checked: they become part of names that are deleted."""

    name: str
    strategy: StorageStrategy

    @property
    def prefixes(self) -> tuple[str, ...] | None:
        found = self.strategy.prefixes
        return found if found in (None, ("",)) else tuple(self._checked(one) for one in found or ())

    def location(self, partition: str, file_id: str) -> str:
        prefix, listed = self.strategy.location(partition, file_id), self.strategy.prefixes
        if listed == ("",) and prefix == "":
            return prefix
        return self._checked(prefix if listed is None or prefix in listed else None)

    def _checked(self, prefix: object) -> str:
        if isinstance(prefix, str) and _SEGMENT.fullmatch(prefix):
            return prefix
        raise Invalid(
            f"The storage strategy {self.name!r} gives locations that are no plain names, or not among its prefixes",
            remedy="Let it give one name of letters, digits, '-', '_' and '='; only empty texts if prefixes are ('',)",
            key=STRATEGY_CLASSES,
        )


def may_give(strategy: StorageStrategy, prefix: str) -> bool:
    """Whether a strategy may give this folder, or an empty text for none. One of the caller's own that tells no list is
    taken to give none that is asked about.
    """
    if isinstance(strategy, HashedPrefix):
        digits = "0123456789abcdef" if strategy.is_hex else "01"
        return len(prefix) == strategy.bits // (4 if strategy.is_hex else 1) and not prefix.strip(digits)
    if isinstance(strategy, FileIdPart):  # ids are UUIDs, or begin with digits
        return 0 < len(prefix) <= strategy.length and not prefix.strip("0123456789abcdef-")
    return prefix in (strategy.prefixes or ())


def parse_strategy(text: str, own: Mapping[str, StorageStrategy]) -> StorageStrategy:
    """The strategy that `text` names; `own` are those the caller allows, by name.

    Raises:
        Unsupported: nobody knows it, or the caller did not name the class for it.
    """
    if text in ("hive", "map"):
        return NoPrefix()
    if text == "rfc60":
        return HashedPrefix(32, is_hex=True)
    if (match := _BITS.fullmatch(text)) is not None and (found := _hashed(int(match[1]), match[2])) is not None:
        return found
    if (match := _PART.fullmatch(text)) is not None and int(match[2]) > 0:
        return FileIdPart(int(match[1]), int(match[2]))
    name = text.removeprefix("own:")
    if name != text and name in own:
        return OwnStrategy(name, own[name])
    if name != text:
        raise Unsupported(
            f"The table's files lie where the storage strategy {name!r} says, which is no part of hoodie",
            remedy=f"Name its class with the option {STRATEGY_CLASSES}={name}=package.module:Class, if you trust it",
            key=STRATEGY_CLASSES,
        )
    raise Unsupported(f"There is no storage strategy {text[:80]!r}", remedy=f"Known are {_KNOWN}", strategy=text[:80])


def load_own_strategies(said: str) -> dict[str, StorageStrategy]:
    """Strategies by name, of the classes that a caller names: `name=package.module:Class`, separated by commas.

    Raises:
        Invalid: a class is not there, cannot be made without arguments, or is no strategy.
    """
    found: dict[str, StorageStrategy] = {}
    for part in filter(None, (text.strip() for text in said.split(","))):
        name, _, path = part.partition("=")
        module, _, class_name = path.rpartition(":")
        try:
            made = getattr(importlib.import_module(module), class_name)()
        except Exception as error:  # whatever a module raises while it is imported
            raise Invalid(
                f"{STRATEGY_CLASSES}: {part!r} cannot be made: {type(error).__name__}: {error}",
                remedy="Write name=package.module:Class, of a class that needs no arguments",
                key=STRATEGY_CLASSES,
            ) from error
        if not isinstance(made, StorageStrategy) or not _SEGMENT.fullmatch(name):
            raise Invalid(
                f"{STRATEGY_CLASSES}: {part!r} names no storage strategy",
                remedy="Give the class `prefixes` and `location(partition, file_id)`, and a plain name before the '='",
                key=STRATEGY_CLASSES,
            )
        found[name] = made
    return found


def _hashed(bits: int, words: str) -> HashedPrefix | None:
    said = words.split(":")[1:]
    hashes = [word for word in said if word in ("id32", "id64")]
    is_hex = "hex" in said
    if not 1 <= bits <= MAX_BITS or len(set(said)) < len(said) or len(hashes) > 1 or (is_hex and bits % 4):
        return None
    kind: Literal["rfc", "id32", "id64"] = "rfc" if not hashes else "id32" if hashes[0] == "id32" else "id64"
    return HashedPrefix(bits, is_hex, kind, "file" in said)

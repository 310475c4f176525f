"""Values as Kryo 4 writes them with references on: what delete lists before Hudi 0.14 are made of.

1. A class is a number: 0 null, 1 a name (with its text at first sight, later by its place among the names), else a
   class that the writer had registered. 2 to 11 are Java's own.
2. Objects, texts among them, are marked: 0 null, 1 a new one, n the one that came as number n - 2. Boxed numbers are
   not marked. Numbers count objects in the order in which they begin.
3. Numbers have seven bits in a byte, lowest first, the top bit says that more follow; a long ends at the ninth byte.
4. A text of plain ASCII has the top bit set in its last byte; any other starts with its length in UTF-16 units, each of
   which has one to three bytes.

Names are compared, never loaded. Nothing is allocated because a number says so.
"""

from __future__ import annotations

import re
from typing import Any, Final

_HIGH_BYTE: Final = re.compile(rb"[\x80-\xff]")
_NAMED: Final = 1


class Damage(Exception):
    """The bytes are not what Kryo writes; says what is wrong and where (`at`, from the start of the bytes)."""

    def __init__(self, cause: str, at: int) -> None:
        self.at = at
        super().__init__(cause)


class KryoReader:
    """Bytes read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self._names: list[str] = []
        self._objects: list[Any] = []

    @property
    def rest(self) -> int:
        """Bytes that are left."""
        return len(self.data) - self.at

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        if not 0 <= length <= self.rest:
            raise self.damage(f"ends within {length} bytes")
        self.at += length
        return self.data[self.at - length : self.at]

    def unsigned(self) -> int:
        """The next number of up to 32 bits, not negative."""
        return self._packed(5) & 0xFFFF_FFFF

    def signed(self) -> int:
        """The next number with its sign in the lowest bit."""
        packed = self._packed(9)
        return (packed >> 1) ^ -(packed & 1)

    def plain_long(self) -> int:
        """The next number of 64 bits in two's complement."""
        packed = self._packed(9)
        return packed - (1 << 64) if packed >> 63 else packed

    def class_of(self) -> str | int | None:
        """Name of the class of the next value, its number if the writer had registered it, None for a null."""
        number = self.unsigned()
        if number != _NAMED:
            return number or None
        place = self.unsigned()
        if place == len(self._names):
            self._names.append(self.text() or "")
        if place >= len(self._names):
            raise self.damage(f"names class {place} of {len(self._names)}")
        return self._names[place]

    def begin(self) -> int:
        """The mark of the next object: a number to `finish` a new one with, or what `known` takes."""
        mark = self.unsigned()
        if mark == 1:
            self._objects.append(None)
            return len(self._objects) - 1
        return -mark - 1

    def finish(self, number: int, value: Any) -> Any:
        """`value`, remembered under its number."""
        self._objects[number] = value
        return value

    def known(self, mark: int) -> Any:
        """The object that came before, or None: what a negative mark stands for."""
        number = -mark - 1
        if number == 0:
            return None
        if not 0 <= number - 2 < len(self._objects):
            raise self.damage(f"refers to object {number - 2} of {len(self._objects)}")
        return self._objects[number - 2]

    def marked_text(self) -> str | None:
        """The next text that is a marked object."""
        mark = self.begin()
        found: Any = self.finish(mark, self.text()) if mark >= 0 else self.known(mark)
        if found is not None and not isinstance(found, str):
            raise self.damage("refers to an object that is no text")
        return found

    def text(self) -> str | None:
        """The next text without mark."""
        first = self.take(1)[0]
        if first < 0x80:
            return self._ascii()
        length, shift = first & 0x3F, 6
        more = first & 0x40
        while more and shift < 34:
            byte = self.take(1)[0]
            length |= (byte & 0x7F) << shift
            more, shift = byte & 0x80, shift + 7
        return None if length == 0 else self._units(length - 1)

    def damage(self, cause: str) -> Damage:
        return Damage(cause, self.at)

    def _packed(self, max_bytes: int) -> int:
        number = 0
        for place in range(max_bytes):
            byte = self.take(1)[0]
            if place == 8:
                return number | byte << 56
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return number
        raise self.damage("has a number that does not end")

    def _ascii(self) -> str:
        last = _HIGH_BYTE.search(self.data, self.at)
        if last is None:
            raise self.damage("ends within a text")
        whole = self.data[self.at - 1 : last.end()]
        self.at = last.end()
        return (whole[:-1] + bytes([whole[-1] & 0x7F])).decode("ascii")

    def _units(self, count: int) -> str:
        """A text of `count` UTF-16 units."""
        if count > self.rest:
            raise self.damage(f"ends within a text of {count} characters")
        plain = self.data[self.at : self.at + count]
        if plain.isascii():
            self.at += count
            return plain.decode("ascii")
        units = bytearray()
        for _ in range(count):
            first = self.take(1)[0]
            unit = first
            if first >= 0xE0:
                second, third = self.take(2)
                unit = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
            elif first >= 0xC0:
                unit = (first & 0x1F) << 6 | self.take(1)[0] & 0x3F
            units += unit.to_bytes(2, "little")
        try:
            return units.decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self.damage("has a text that is half a character") from error

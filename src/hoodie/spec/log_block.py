"""One block of a log file: what its frame says, and the frame's bytes.

1. A frame is magic, length, version, kind, header, content, footer and the length again. All integers are big-endian.
2. A header maps nine known keys to texts. Their order in a block is arbitrary; it is kept, so that a block that was
   read can be written again with the same bytes.
3. A damaged span of a file is a block of kind `CORRUPT`: it has a place and a size, no header and no content.
4. What the content means depends on the kind, and is for others: `hoodie.spec.log_records` splits the content of Avro
   blocks, the package `hoodie.logs` turns contents into Arrow. The archived timeline of version 6 needs no more than
   what is here, so this module knows no Arrow, no HFile and no storage.

How a file is cut into blocks: `hoodie.spec.log_file`. Grammar and an example: `docs/format/log-files.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.spec.instant import InstantTime

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1

MAX_HEADER_ENTRIES = 64
"""Entries a header may have. Nine keys exist; a repeated key replaces the value before it."""

MAX_HEADER_BYTES = 128 << 20
"""Bytes of all texts of one header. The largest are schemas and record positions of wide or long blocks."""

LENGTH_BYTES = 8
FRAME_START_BYTES = len(MAGIC) + LENGTH_BYTES
"""Magic and length: the length counts what comes after it."""

MIN_LENGTH = 4 + 4 + 4 + LENGTH_BYTES + 4 + LENGTH_BYTES
"""Version, kind, empty header, content length, empty footer, and the length again."""

ROLLBACK_COMMAND = "0"
"""Value of `COMMAND_BLOCK_TYPE` in a rollback block, the only command there is."""

TRUE = "true"


class BlockKind(IntEnum):
    """What a block holds, numbered as in its frame."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def is_data(self) -> bool:
        """Whether the block holds rows of the table (change data are no rows of it)."""
        return self in (BlockKind.AVRO_DATA, BlockKind.HFILE_DATA, BlockKind.PARQUET_DATA)


class HeaderKey(IntEnum):
    """What a header may say, numbered as in its bytes. Readers of version 6 tables know the first seven only."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


Header = Mapping[HeaderKey, str]


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block in a file: where it lies (bytes, with its magic), and what its header says.

    `content` is there when finding the block has read it anyway: in small files.
    """

    path: str
    start: int
    size_bytes: int
    kind: BlockKind
    header: Header = field(default_factory=dict, repr=False)
    content_start: int = 0
    content_bytes: int = 0
    content: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def end(self) -> int:
        """Offset of the byte after the block."""
        return self.start + self.size_bytes

    @property
    def instant(self) -> InstantTime:
        """Requested time of the write that made the block.

        Raises:
            Corrupt: the header does not say. Blocks of archived timelines do not.
        """
        return self._said(HeaderKey.INSTANT_TIME)

    @property
    def target_instant(self) -> InstantTime:
        """The instant that a rollback block takes back.

        Raises:
            Corrupt: the header does not say.
        """
        return self._said(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def schema(self) -> str:
        """Avro JSON of the rows in the block.

        Raises:
            Corrupt: the header has none. Delete blocks may have none, commands never do.
        """
        return self._said(HeaderKey.SCHEMA)

    @property
    def compacted_instants(self) -> tuple[InstantTime, ...]:
        """Instants whose blocks this one replaces, as the header lists them (in no certain order); mostly none."""
        times = self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        return () if times is None else tuple(time.strip() for time in times.split(",") if time.strip())

    @property
    def is_partial(self) -> bool:
        """Whether rows have only some columns of the table, those that an update changed."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == TRUE

    @property
    def positions_instant(self) -> InstantTime | None:
        """Requested time of the base file that the block's record positions speak of."""
        return self.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)

    def _said(self, key: HeaderKey) -> str:
        if key not in self.header:
            raise Corrupt(
                f"{self.kind.name} block at byte {self.start} of {self.path} has no {key.name}",
                remedy="Restore the file from a copy, or roll back the commit that wrote it",
                path=self.path,
                offset=self.start,
            )
        return self.header[key]


def encode_block(kind: BlockKind, header: Header, content: bytes) -> bytes:
    """The bytes of a block, magic to closing length. Header entries keep their order.

    Raises:
        Invalid: a block of kind CORRUPT, which readers make and nobody writes.
    """
    if kind is BlockKind.CORRUPT:
        raise Invalid("A block of kind CORRUPT is never written: it stands for damaged bytes")
    entries = b"".join(_entry(key, text.encode()) for key, text in header.items())
    front = struct.pack(">iii", FORMAT_VERSION, kind, len(header)) + entries + struct.pack(">q", len(content))
    length = len(front) + len(content) + 4 + LENGTH_BYTES
    parts = (MAGIC, struct.pack(">q", length), front, content, struct.pack(">iq", 0, length + len(MAGIC)))
    return b"".join(parts)


def parse_header(
    entries: Iterable[tuple[int, bytes]], path: str, offset: int, schemas: dict[bytes, str]
) -> dict[HeaderKey, str]:
    """Header of the entries (key number, text) in the order of the bytes.

    Every block of a file repeats the schema: `schemas` holds those seen, so that they share one text.

    Raises:
        Corrupt: a text is not UTF-8, or a key number is negative.
        Unsupported: a key of a later release: what it asks of readers is unknown.
    """
    header: dict[HeaderKey, str] = {}
    for number, text in entries:
        if not 0 <= number < len(HeaderKey):
            if number < 0:
                raise _damaged(f"names the header key {number}", path, offset)
            raise Unsupported(
                f"Log block at byte {offset} of {path} has the header key {number}, which is newer than this release",
                remedy="Read the table with the release that wrote it, or compact it there",
                path=path,
                offset=offset,
                key=number,
            )
        key = HeaderKey(number)
        try:
            value = schemas[text] if text in schemas else text.decode()
        except UnicodeDecodeError as error:
            raise _damaged(f"has a {key.name} that is not UTF-8", path, offset) from error
        header[key] = schemas.setdefault(text, value) if key is HeaderKey.SCHEMA else value
    return header


def parse_kind(version: int, number: int, path: str, offset: int) -> BlockKind:
    """Kind of a block from the two numbers that start its frame.

    Raises:
        Unsupported: another version of the format, or a kind of a later release.
        Corrupt: the kind is not a number that blocks are written with.
    """
    if version != FORMAT_VERSION:
        raise unsupported_version(version, path, offset)
    if number > max(BlockKind):
        raise Unsupported(
            f"Log block at byte {offset} of {path} is of kind {number}, which is newer than this release",
            remedy="Read the table with the release that wrote it, or compact it there",
            path=path,
            offset=offset,
            kind=number,
        )
    if number < 0 or number == BlockKind.CORRUPT:
        raise _damaged(f"is of kind {number}", path, offset)
    return BlockKind(number)


def unsupported_version(version: int, path: str, offset: int) -> Unsupported:
    """The error for a block of another format version; version 0 was written by releases before 0.5."""
    return Unsupported(
        f"Log block at byte {offset} of {path} has the format version {version}, known is {FORMAT_VERSION}",
        remedy="Compact the table with the release that wrote it",
        path=path,
        offset=offset,
        version=version,
    )


def _entry(key: HeaderKey, text: bytes) -> bytes:
    return struct.pack(">ii", key, len(text)) + text


def _damaged(what: str, path: str, offset: int) -> Corrupt:
    return Corrupt(
        f"Log block at byte {offset} of {path} {what}",
        remedy="Restore the file from a copy, or roll back the commit that wrote it",
        path=path,
        offset=offset,
    )

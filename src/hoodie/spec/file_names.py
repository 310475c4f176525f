"""Names of data files: base files, log files, file ids and write tokens.

1. `parse_x(name)` gives None for a name of another kind and never raises; `.text` of a parsed name is the name.
2. A file id holds no `_`; the file group is (partition path, file id).
3. The instant in a log file's name is the slice's base instant in version 6, the delta commit in version 8+.

Of folders it knows how a partition's path and a name are put together. Grammar and examples:
`docs/format/file-names.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

LogKind = Literal["log", "archive"]

BASE_FILE_EXTENSIONS = ("parquet", "orc", "hfile", "lance")
UNKNOWN_WRITE_TOKEN = "1-0-1"
MAX_DIGITS = 10
"""Digits of a version or of a part of a write token. They are 32-bit numbers."""

_BASE = re.compile(r"([^_/]+)_([^_/]+)_([0-9]+)((?:_[^./]*)?)\.([A-Za-z0-9]+)")
_LOG = re.compile(r"\.([^._/]+)_([^./]*)\.(log|archive)\.([0-9]{1,10})(?:_([0-9]+-[0-9]+-[0-9]+)((?:\.cdc)?))?")


def token_of_instant(number: int, instant: str, attempt: int) -> str:
    """A write token that no write of another instant has, give or take a day: the instant's last nine digits, hours to
    milliseconds, stand for the stage. `number` and `attempt` are those of the task.
    """
    return f"{number}-{int(instant[-9:])}-{attempt}"


@dataclass(frozen=True, slots=True)
class WriteToken:
    """Which attempt of which task wrote a file: partition, stage and attempt of the task."""

    partition: int
    stage: int
    attempt: int

    @property
    def text(self) -> str:
        return f"{self.partition}-{self.stage}-{self.attempt}"


class BaseFileName(NamedTuple):
    """`<file id>_<write token>_<instant>.<extension>`. `suffix` is what external tools put after the instant."""

    file_id: str
    write_token: str
    instant: str
    extension: str = "parquet"
    suffix: str = ""

    @property
    def text(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}{self.suffix}.{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """`.<file id>_<instant>.log.<version>[_<write token>[.cdc]]`."""

    file_id: str
    instant: str
    version: int
    write_token: str | None = None
    suffix: str = ""
    kind: LogKind = "log"

    @property
    def text(self) -> str:
        token = "" if self.write_token is None else f"_{self.write_token}{self.suffix}"
        return f".{self.file_id}_{self.instant}.{self.kind}.{self.version}{token}"

    @property
    def is_cdc(self) -> bool:
        return self.suffix == ".cdc"

    @property
    def order(self) -> tuple[str, int, str, str]:
        """Sort key of log files within a slice: instant, version, write token as text (absent first), suffix."""
        return self.instant, self.version, self.write_token or "", self.suffix


def parse_base_file_name(name: str) -> BaseFileName | None:
    """The parts of a base file's name, None for any other file (checksums, partition metafiles, logs)."""
    parts = _base_parts(name)
    return None if parts is None else BaseFileName(*parts)


def _base_parts(name: str) -> tuple[str, str, str, str, str] | None:
    parts = name.split("_")
    if len(parts) == 3:  # nearly every name, and there may be a hundred thousand of them
        instant, _, extension = parts[2].partition(".")
        is_whole = parts[0] and parts[1] and instant.isascii() and instant.isdecimal() and "/" not in name
        if is_whole and extension in BASE_FILE_EXTENSIONS and name[0] != ".":
            return parts[0], parts[1], instant, extension, ""
        return None
    match = _BASE.fullmatch(name)
    if match is None or match[5] not in BASE_FILE_EXTENSIONS or name.startswith("."):
        return None
    return match[1], match[2], match[3], match[5], match[4]


def parse_log_file_name(name: str) -> LogFileName | None:
    """The parts of a log file's name, None for any other file."""
    match = _LOG.fullmatch(name)
    if match is None:
        return None
    kind: LogKind = "log" if match[3] == "log" else "archive"
    return LogFileName(match[1], match[2], int(match[4]), match[5], match[6] or "", kind)


def parse_data_file_name(name: str) -> BaseFileName | LogFileName | None:
    """The parts of the name of a base file or a log file, None for any other file."""
    return parse_base_file_name(name) or parse_log_file_name(name)


def file_id_and_instant(name: str) -> tuple[str, str] | None:
    """What `parse_data_file_name` says of file id and instant, in a third of the time: for who asks of every file."""
    if name.startswith("."):
        match = _LOG.fullmatch(name)
        return None if match is None else (match[1], match[2])
    parts = _base_parts(name)
    return None if parts is None else (parts[0], parts[2])


def path_in(partition: str, name: str) -> str:
    """The path, from the table's root, of a file in a partition: that of a table without partitions is empty."""
    return f"{partition}/{name}" if partition else name


def parse_write_token(text: str) -> WriteToken | None:
    """The three numbers of a write token, None for any other text."""
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) <= MAX_DIGITS for part in parts):
        return None
    return WriteToken(*(int(part) for part in parts))


def new_file_id(uuid: str, number: int = 0) -> str:
    """The file id of the `number`-th file group made from one random UUID."""
    return f"{uuid}-{number}"


def bucket_file_id(bucket: int, uuid: str, number: int = 0) -> str:
    """The file id of a simple bucket: the bucket number in place of the UUID's first 8 characters."""
    return new_file_id(f"{bucket:08d}{uuid[8:]}", number)

"""The files that make up a table, by file slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hoodie.present.forms import Form
from hoodie.present.sheet import Cells, Column, Sheet, sheet_of
from hoodie.units import count_text, size_text

if TYPE_CHECKING:
    from hoodie.view import FileSlice


def _json(part: FileSlice) -> dict[str, Any]:
    """Files by their names inside the partition."""
    return {
        "partition": part.partition,
        "file_id": part.file_id,
        "base_instant": part.base_instant,
        "base_file": _file_name(part.base.path) if part.base else None,
        "log_files": [_file_name(log.path) for log in part.logs],
    }


def _sheet(slices: Sequence[FileSlice]) -> Sheet:
    total = size_text(sum(part.size_bytes for part in slices))
    return sheet_of(f"Files: {count_text(len(slices), 'file slice')}, {total}", _CELLS, slices)


def _logs_text(part: FileSlice) -> str:
    return f"{len(part.logs)} ({size_text(sum(log.size_bytes for log in part.logs))})" if part.logs else ""


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


_CELLS: Final[Cells[FileSlice]] = {
    Column("partition"): lambda part: part.partition,
    Column("file group", wraps=True): lambda part: part.file_id,
    Column("base instant"): lambda part: part.base_instant,
    Column("base file", is_number=True): lambda part: size_text(part.base.size_bytes) if part.base else "",
    Column("logs", is_number=True): _logs_text,
}
_SLICE: Form[FileSlice] = Form(_json, sheet=lambda part: _sheet((part,)), listing=_sheet)

FORMS: Final = {"FileSlice": _SLICE}

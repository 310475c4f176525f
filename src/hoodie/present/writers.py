"""Who is at work on a table: one line for each sign of somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hoodie.present.forms import Form
from hoodie.present.plain import plain_text
from hoodie.present.sheet import Cells, Column, Sheet, Tone, sheet_of

if TYPE_CHECKING:
    from hoodie.services.overview.writers import Writer

_CELLS: Final[Cells[Writer]] = {
    Column("sign"): lambda writer: writer.sign,
    Column("operation", wraps=True): lambda writer: plain_text(writer.operation),
    Column("process", wraps=True): lambda writer: plain_text(_process(writer)),
    Column("since", wraps=True): lambda writer: plain_text(writer.since),
    Column("instant"): lambda writer: plain_text(writer.instant or ""),
    Column("last heartbeat", is_number=True): lambda writer: (
        "" if writer.silent_s is None else f"{writer.silent_s:.0f} s ago"
    ),
    Column("is"): lambda writer: writer.verdict,
}


def _process(writer: Writer) -> str:
    return f"{writer.process} on {writer.host}" if writer.process is not None else ""


def _tone(writer: Writer) -> Tone:
    return "warning" if writer.verdict in ("dead", "stuck") else ""


def _sheet(writers: Sequence[Writer]) -> Sheet:
    return sheet_of("At work", _CELLS, writers, tone=_tone)


_WRITER: Form[Writer] = Form(title=lambda writer: f"Somebody {writer.sign}", listing=_sheet)

FORMS: Final = {"Writer": _WRITER}

"""Whether what processes did to a register, and saw in it, is what some order of their actions one by one gives.

1. A register has one value, which a write sets and a read gives. The order must keep what is certain: an action that
   had ended before another began comes before it (linearisability, which is serialisability that knows the clock).
2. A write without an answer, or whose answer leaves open what became of it, has happened at any time after it began,
   or never. One whose value nobody saw has not happened as far as anybody can tell; it is left out.
3. All values written are different, but for `None`, the value of what is not there: removals are writes of it.
4. The search is that of Wing and Gong, with a memory of what was tried: actions that may come next are tried in turn, a
   read that gives the present value is taken at once, since it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from hoodie.testing.race_journal import GROUP, NOT_WRITTEN

SHARED: Final = "g"
"""Whose keys they are that several writers write."""


@dataclass(frozen=True, slots=True)
class Act:
    """One action on a register, between two moments of one clock. `end` is infinite where it may not have happened."""

    begin: float
    end: float
    value: str | None
    is_read: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether it has happened."""
        return self.end < inf


def is_serial(acts: Iterable[Act], first: str | None = None) -> bool:
    """Whether some order of the actions gives what was read, on a register whose value is `first` before them."""
    found = _told(acts)
    certain = sum(1 << place for place, act in enumerate(found) if act.is_certain)
    tried: set[tuple[int, str | None]] = set()
    open_: list[tuple[int, str | None]] = [(0, first)]
    while open_:
        done, value = open_.pop()
        done = _with_reads(found, done, value)
        if done & certain == certain:
            return True
        if (done, value) in tried:
            continue
        tried.add((done, value))
        open_ += [(done | 1 << place, found[place].value) for place in _next(found, done) if not found[place].is_read]
    return False


def acts_of(journals: Iterable[Iterable[Mapping[str, Any]]], group: int) -> tuple[Act, ...]:
    """What the journals of a race say of one group of the shared keys, all rows of which have one text."""
    acts: list[Act] = []
    for notes in journals:
        begun: Mapping[str, Any] | None = None
        for note in notes:
            if begun is not None:  # the next note is of its end, or of the process that came after it was killed
                acts += _write(begun, note if note["what"] == "end" else None, group)
                begun = None
            if note["what"] == "begin":
                begun = note
            elif note["what"] == "saw":
                acts.append(Act(note["began"], note["at"], _text_of(note["rows"], group), is_read=True))
        if begun is not None:
            acts += _write(begun, None, group)
    return tuple(acts)


def _write(begun: Mapping[str, Any], end: Mapping[str, Any] | None, group: int) -> list[Act]:
    how = "" if end is None else end["how"]
    if begun["group"] != group or how in NOT_WRITTEN:
        return []
    return [Act(begun["at"], end["at"] if end is not None and how == "done" else inf, begun["text"])]


def _text_of(rows: Mapping[str, str], group: int) -> str | None:
    """The text of the rows of a group, which is no written one where they are not all there or not all the same."""
    texts = [text for key, text in rows.items() if key.startswith(f"{SHARED}-{group}-")]
    if not texts:
        return None
    return texts[0] if len(texts) == GROUP and len(set(texts)) == 1 else f"half: {texts}"


def _told(acts: Iterable[Act]) -> Sequence[Act]:
    """The actions by their beginning, without those that nobody can tell from what has not happened."""
    every = sorted(acts, key=lambda act: (act.begin, act.end))
    seen = {act.value for act in every if act.is_read}
    return [act for act in every if act.is_certain or act.value in seen]


def _with_reads(acts: Sequence[Act], done: int, value: str | None) -> int:
    """What is done once all reads that give the present value, and may come now, are done, too."""
    while True:
        reads = [place for place in _next(acts, done) if acts[place].is_read and acts[place].value == value]
        if not reads:
            return done
        done |= sum(1 << place for place in reads)


def _next(acts: Sequence[Act], done: int) -> list[int]:
    """Which of the others may come next: those that began before any other had ended."""
    places: list[int] = []
    soonest = inf
    for place, act in enumerate(acts):
        if act.begin > soonest:
            break
        if not done >> place & 1:
            places.append(place)
            soonest = min(soonest, act.end)
    return [place for place in places if acts[place].begin <= soonest]

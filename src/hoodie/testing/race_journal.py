"""What a racing writer noted of its actions, and what its rows may be by that.

1. A writer owns its keys: they come in groups of three, one for each partition, that one action writes together. The
   text of a row is the number of the action that wrote it.
2. Before an action it notes what it wants, afterwards how it ended. Notes are on the disk before anything happens.
3. An action that ended "done" has happened. One that ended in an error that says nothing was written has not. Any
   other, and one without an end because the writer was killed, has happened or not, as a whole; the next look tells.
4. A look at its own rows that agrees with none of these is a fault: something acknowledged was lost, something never
   committed was seen, or half an action.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

GROUP: Final = 3
NOT_WRITTEN: Final = frozenset({"Conflict", "WriteConflict", "Invalid"})
"""Errors after which nothing has changed."""

State = Mapping[str, str]
"""Text by key."""


def keys_of(writer: str, group: int) -> tuple[str, ...]:
    return tuple(f"{writer}-{group}-{place}" for place in range(GROUP))


class Journal:
    """The notes of one writer, one JSON object a line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def note(self, **fields: Any) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def notes(self) -> list[dict[str, Any]]:
        if not os.path.exists(self._path):
            return []
        with open(self._path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]


@dataclass(frozen=True, slots=True)
class Account:
    """What the notes of a writer say: the states its rows may be in, and what looks found to be wrong."""

    possible: tuple[State, ...]
    faults: tuple[str, ...]
    ends: Mapping[str, int]


def account_of(notes: Iterable[Mapping[str, Any]]) -> Account:
    """The account of the notes, in their order."""
    possible: tuple[State, ...] = ({},)
    open_action: Mapping[str, Any] | None = None
    faults: list[str] = []
    ends: dict[str, int] = {}
    for note in notes:
        if open_action is not None and note["what"] != "end":
            possible = _maybe(possible, open_action)
            ends["killed"] = ends.get("killed", 0) + 1
            open_action = None
        match note["what"]:
            case "begin":
                open_action = note
            case "end":
                assert open_action is not None
                ends[note["how"]] = ends.get(note["how"], 0) + 1
                if note["how"] == "done":
                    possible = tuple(_after(state, open_action) for state in possible)
                elif note["how"] not in NOT_WRITTEN:
                    possible = _maybe(possible, open_action)
                open_action = None
            case "look":
                if note["rows"] not in possible:
                    faults.append(f"saw {note['rows']}, possible: {possible}")
                possible = (note["rows"],)
            case "fault":
                faults.append(note["text"])
    if open_action is not None:
        possible = _maybe(possible, open_action)
    return Account(possible, tuple(faults), ends)


def _after(state: State, action: Mapping[str, Any]) -> State:
    keys = keys_of(action["writer"], action["group"])
    others = {key: text for key, text in state.items() if key not in keys}
    return others if action["text"] is None else {**others, **dict.fromkeys(keys, action["text"])}


def _maybe(states: tuple[State, ...], action: Mapping[str, Any]) -> tuple[State, ...]:
    return (*states, *(after for state in states if (after := _after(state, action)) not in states))

"""What a request is answered with: status, bytes, and what they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hoodie.remote.files_arrow import MEDIA_TYPE
from hoodie.remote.json_values import Json


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of an answer, and what it is. `is_still`: whether the same request would be answered the same
    without a look at the table; where there is none, nobody knows.
    """

    status: int
    body: bytes
    media_type: str = "text/plain"
    is_still: Callable[[], bool] | None = field(default=None, compare=False)


def answer_of(found: Json | bytes, parameters: Mapping[str, str]) -> Answer:
    """The answer to a question: an Arrow stream as it is, anything else as JSON."""
    return Answer(200, found, MEDIA_TYPE) if isinstance(found, bytes) else json_answer(found, parameters)


def json_answer(value: Json, parameters: Mapping[str, str]) -> Answer:
    """A value as JSON; with indents where `parameters` ask for pretty ones."""
    if "pretty" in parameters:
        return Answer(200, json.dumps(value, indent=2, ensure_ascii=False).encode())
    import orjson  # noqa: PLC0415 - of the extra `server`: a writer that looks into its own service does without

    return Answer(200, orjson.dumps(value))


def text_answer(status: int, text: str) -> Answer:
    """A line for people."""
    return Answer(status, text.encode())

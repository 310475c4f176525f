"""Values as JSON and as text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from hoodie.present.plain import json_line, plain_text, plain_value, visible_text


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("text", "text"),
        (datetime(2013, 1, 2, 3, 4, 5, 678901, UTC), "2013-01-02T03:04:05.678901+00:00"),
        (date(2013, 1, 2), "2013-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(seconds=90), "0:01:30"),
        (Decimal("12.50"), "12.50"),
        (b"\x00\xff", "AP8="),
        ([1, None, Decimal(2)], [1, None, "2"]),
        ({"a": b"x"}, {"a": "eA=="}),
        ([("k", 1)], [["k", 1]]),
    ],
)
def test_every_value_of_a_row_has_a_plain_form(value: Any, plain: Any) -> None:
    assert plain_value(value) == plain


def test_a_row_is_one_line() -> None:
    assert json_line({"a": 1, "b": "ü\n", "c": None}) == '{"a": 1, "b": "ü\\n", "c": null}'


def test_text_stays_in_one_line() -> None:
    assert plain_text("a\nb") == "a⏎b"
    assert plain_text([1, "x"]) == '[1, "x"]'
    assert plain_text(True) == "true"


@pytest.mark.parametrize(
    "steering", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\x08", "\x7f", "\u202e", "\u2066"]
)
def test_what_steers_a_terminal_is_shown_as_an_escape(steering: str) -> None:
    character = steering[0]
    for text in (
        plain_text(f"a{steering}b"),
        plain_text([steering]),
        visible_text(steering),
        json_line({"a": steering}),
    ):
        assert character not in text
        assert "\\" in text
    assert json.loads(json_line({steering: steering})) == {steering: steering}
    assert visible_text("tab\tline\nü日本👩‍👧") == "tab\tline\nü日本👩‍👧"

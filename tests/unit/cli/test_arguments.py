"""Arguments shared by commands."""

from __future__ import annotations

import pytest

from hoodie.cli.arguments import parse_columns, parse_options
from hoodie.errors import Invalid


def test_options_are_split_at_the_first_equals_sign() -> None:
    assert parse_options(["a=b=c", " k =", "a=b=c"]) == {"a": "b=c", "k": ""}


@pytest.mark.parametrize("pairs", [["novalue"], ["=x"], ["a=1", "a=2"]])
def test_malformed_options_are_invalid(pairs: list[str]) -> None:
    with pytest.raises(Invalid, match="--option"):
        parse_options(pairs)


def test_columns() -> None:
    assert parse_columns(None) is None
    assert parse_columns("a, b.c,") == ["a", "b.c"]

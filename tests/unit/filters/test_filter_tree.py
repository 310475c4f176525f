"""Every part of an accepted node is read, or the condition is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from hoodie.errors import Unsupported
from hoodie.filters.tree import KNOWN_ARGS, parse_condition


@pytest.mark.parametrize("kind", KNOWN_ARGS, ids=lambda kind: kind.__name__)
def test_what_sqlglot_may_set_on_a_node_and_nobody_reads_is_refused(kind, monkeypatch):
    for name in {*kind.arg_types, "a_flag_of_tomorrow"} - KNOWN_ARGS[kind]:
        node = kind()
        node.set(name, exp.Literal.string("x"))
        monkeypatch.setattr(sqlglot, "parse_one", lambda *_, node=node, **__: node)
        if (kind, name) in {(exp.Like, "negate"), (exp.ILike, "negate")}:
            assert isinstance(parse_condition("a like 'b'"), exp.Not)
            continue
        with pytest.raises(Unsupported, match="not supported here"):
            parse_condition("written in a way of tomorrow")


@pytest.mark.parametrize("operator", ["like", "ilike"])
def test_a_negated_like_is_not_over_like_whichever_way_sqlglot_says_it(operator, monkeypatch):
    kind = {"like": exp.Like, "ilike": exp.ILike}[operator]
    plain = kind(this=exp.column("a"), expression=exp.Literal.string("b"))
    flagged = plain.copy()
    flagged.set("negate", True)
    for node in (flagged, exp.Not(this=plain)):
        monkeypatch.setattr(sqlglot, "parse_one", lambda *_, node=node, **__: node.copy())
        found = parse_condition("")
        assert isinstance(found, exp.Not)
        assert found.this.unnest() == plain


def test_the_installed_sqlglot_is_in_the_range_that_was_tried():
    """26 to 29 lack names that are used here; a release above the range may say things in new ways."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    (wanted,) = (one for one in project["dependencies"] if one.startswith("sqlglot"))
    low, below = map(int, re.fullmatch(r"sqlglot>=(\d+),<(\d+)", wanted).groups())
    assert low <= int(sqlglot.__version__.split(".")[0]) < below

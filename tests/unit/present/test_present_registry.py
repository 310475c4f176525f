"""Whatever people are given by the façade has a JSON, an HTML and a terminal form; whoever is registered exists."""

from __future__ import annotations

import importlib
import io
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest
from rich.console import Console

import hoodie
from hoodie.config import find
from hoodie.notebook import Displayed
from hoodie.present import as_grid, as_html, as_json
from hoodie.present.registry import MODULES
from hoodie.query import Rows
from hoodie.spec import V9, Instant, State
from hoodie.table import Table
from hoodie.table.history import TableHistory
from hoodie.table.indexes import TableIndexes
from hoodie.table.savepoints import TableSavepoints
from hoodie.table.services import TableServices
from hoodie.testing.lake import Lake, row
from hoodie.timeline import Timeline

AT = "20260101000000000"
FOR_ENGINES = "ReadPlan"
"""What `Table` gives to who reads by other means than ours: no result, and not for people."""
PUBLIC = (Table, TableServices, TableIndexes, TableSavepoints, TableHistory)
HOSTILE = "<b>\x1b[2J$[red]x[/red]"


def classes() -> Iterator[type]:
    """All classes of the packages that have results, and of those below."""
    for module in pkgutil.walk_packages(hoodie.__path__, "hoodie."):
        if not re.match(r"hoodie\.(spark|testing|cli\.__main__)", module.name):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and value.__module__ == module.name:
                    yield value


CLASSES = {
    one.__name__: one
    for one in classes()
    if one is not Displayed and (one.__name__ in MODULES or issubclass(one, Displayed))
}


def given_by(surface: type) -> Iterator[type]:
    """Dataclasses of ours that public methods and properties of a class return."""
    namespace = {one.__name__: one for one in classes()}
    for name, member in vars(surface).items():
        function = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and callable(function):
            returned = get_type_hints(function, localns=namespace).get("return")
            yield from (one for one in parts_of(returned) if is_dataclass(one))


def parts_of(hint: Any) -> Iterator[type]:
    if get_origin(hint) is None and isinstance(hint, type):
        yield hint
    for part in get_args(hint):
        yield from parts_of(part)


def example(kind: Any) -> Any:
    """A value of a class whose texts are hostile."""
    if is_dataclass(kind):
        assert isinstance(kind, type)
        hints = get_type_hints(kind)
        return kind(**{field.name: example(hints[field.name]) for field in fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(example(one) for one in arguments if one is not ...)
    if origin is Literal:
        return arguments[0]
    if origin in {Union, UnionType}:
        return example(arguments[0])
    if origin is not None:
        return {example(arguments[0]): example(arguments[1])}
    if issubclass(kind, Enum):
        return next(iter(kind))
    simple: dict[Any, Any] = {
        str: HOSTILE,
        int: 5_000,
        float: 1.5,
        bool: True,
        datetime: datetime(2026, 1, 1, tzinfo=UTC),
    }
    return simple[kind]


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    lake = Lake()
    lake.upsert(row("a"))
    lake.table.savepoints.create(user=HOSTILE)
    yield lake.table
    lake.table.drop()


def values(table: Table) -> dict[str, Any]:
    """One value of each class that is no plain dataclass."""
    instant = Instant(AT, "commit", State.COMPLETED, AT)
    return {
        "Table": table,
        "TableHistory": table.history,
        "TableIndexes": table.indexes,
        "TableSavepoints": table.savepoints,
        "TableConfig": table.config,
        "FileSlice": table.files()[0],
        "Rows": table.scan(),
        "Instant": instant,
        "Timeline": Timeline(V9, (instant,)),
        "ConfigKey": find("hoodie.table.name"),
    }


def text_of(value: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(as_grid(value))
    return out.getvalue()


@pytest.mark.parametrize("name", sorted({*MODULES, *CLASSES}))
def test_whatever_is_registered_or_displayed_has_all_forms(name: str, table: Table) -> None:
    made = values(table)
    value = made[name] if name in made else example(CLASSES[name])
    plain = as_json(value)
    assert json.loads(json.dumps(plain)) == plain
    assert plain
    page = as_html(value)
    assert re.fullmatch(r"<table><caption>.+</caption>.*</table>(<p>.*</p>)*", page, re.DOTALL)
    assert "<b>" not in page
    shown = text_of(value)
    assert len(shown.splitlines()) > 2
    assert "\x1b" not in shown


@pytest.mark.parametrize("surface", PUBLIC)
def test_what_the_facade_gives_is_shown(surface: type, table: Table) -> None:
    assert issubclass(surface, Displayed) or surface is TableServices
    for kind in {one for one in given_by(surface) if one.__name__ != FOR_ENGINES}:
        value = values(table).get(kind.__name__) or example(kind)
        assert json.dumps(as_json(value)), kind
        assert text_of([value, value] if isinstance(as_json(value), dict) else value)


def test_values_in_notebooks_show_their_html(table: Table) -> None:
    assert table._repr_html_() == as_html(table)
    assert table.timeline()._repr_html_() == as_html(table.timeline())
    pa_rows = Rows(pa.table({"a": range(30)}).to_reader())
    assert pa_rows._repr_html_().count("<tr>") == 21
    assert pa_rows.read_all().num_rows == 30


def test_a_dataclass_nobody_registered_is_shown_by_its_fields() -> None:
    @dataclass(frozen=True)
    class VacuumResult:
        files_removed: int
        size_bytes: int
        names: tuple[str, ...]

    value = VacuumResult(1_234, 2048, ("a",))
    assert as_json(value) == {"files_removed": 1234, "size_bytes": 2048, "names": ["a"]}
    for shown in (as_html(value), text_of(value)):
        assert all(part in shown for part in ("vacuum result", "files removed", "1,234", "2.0 KiB"))
    assert "2 rows" in as_html([value, value])


def test_what_has_no_form_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        as_json(object())


@pytest.mark.parametrize("statement", ["import hoodie.timeline, hoodie.query, hoodie.write", "import hoodie.cli.app"])
def test_presenting_is_loaded_when_somebody_looks(statement: str) -> None:
    heavy = ("hoodie.present.grid", "hoodie.present.results", "hoodie.present.page.table", "rich")
    program = f"import sys\n{statement}\nprint(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_json_of_a_result_loads_neither_rich_nor_other_results() -> None:
    program = """
import sys
from hoodie.present import as_json
from hoodie.spec import Instant, State
as_json([Instant("20260101000000000", "commit", State.COMPLETED, None)])
print(*(name for name in ("rich", "pyarrow", "hoodie.services", "hoodie.write") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

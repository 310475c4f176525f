"""The picture of packages in docs/design/0001-architecture.md and the list in README.md are what the code is.

No file imports one that imports it in turn, however far around, and no import hides: not in a string, and not in a
function without the reason why it stands there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "hoodie"
NAME_COLUMNS = 38


def layers() -> list[list[str]]:
    """Names in each line of the picture, highest first."""
    page = (ROOT / "docs" / "design" / "0001-architecture.md").read_text(encoding="utf-8")
    return picture_after("Imports point down only", page)


def picture_after(words: str, page: str) -> list[list[str]]:
    picture = re.search(words + r".*?```\n(.*?)```", page, re.DOTALL)
    assert picture is not None
    return [[name.removesuffix(".py") for name in line[:NAME_COLUMNS].split()] for line in picture[1].splitlines()]


def packages() -> set[str]:
    return {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


def imported(path: Path) -> Iterator[str]:
    """Packages of ours that a module imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "hoodie":
            names = [f"hoodie.{alias.name}" for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name.split(".")[1] for name in names if name.startswith("hoodie."))


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}

IMPORTED_BY_STRING = {
    "hoodie": "public names are loaded on their first use",
    "hoodie.cli.app": "a command loads its own module, and how pyarrow starts before anything loads it",
    "hoodie.config.own_class": "a class of the caller's own, named by the options of a call",
    "hoodie.layout.strategy": "a class of the caller's own, named by the options of a call",
    "hoodie.notebook": "the arrow that goes up: a notebook shows a value",
    "hoodie.present.forms": "the form of a class is loaded when a value of it is shown",
    "hoodie.query.rows": "pandas and polars are optional",
    "hoodie.remote.embedding": "the arrow that goes up: a writer starts a server in its process",
    "hoodie.services.registry": "a service is loaded when it is asked for by name",
    "hoodie.spark": "its names are loaded on their first use",
    "hoodie.spark.enable": "classes of PySpark that some releases do not have",
    "hoodie.spark.worker_daemon": "what workers need is loaded before they are forked",
    "hoodie.table.save": "the arrow that goes up: a Spark DataFrame is handed in",
    "hoodie.table.table": "the arrow that goes up: a Spark session is handed in",
    "hoodie.testing.killed": "a process loads the function it is told",
}
"""Files that import by a string, and why."""


def imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """All import statements but those for type checkers alone."""
    asides = (node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    skipped = {id(node) for aside in asides for statement in aside.body for node in ast.walk(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in skipped:
            yield node


def targets(tree: ast.Module) -> Iterator[str]:
    """Modules of ours that are imported, wherever the statement stands."""
    for node in imports(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
            continue
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield from (found for found in (name if name in FILES else node.module,) if found in FILES)


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Nodes that lead around; empty where none do."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def hidden_imports(source: str) -> Iterator[str]:
    """Imports inside functions that do not say why: behind `noqa`, or in a comment above the block they stand in."""
    lines, tree = source.split("\n"), ast.parse(source)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom) or id(node) not in inside:
            continue
        above = node.lineno - 2
        while re.match(r"\s+(from|import) ", lines[above]):
            above -= 1
        said = re.search(r"PLC0415\W+\w", lines[node.lineno - 1]) or lines[above].strip().startswith("#")
        if not said:
            yield f"{node.lineno}: {ast.unparse(node)}"


LAYERS = layers()
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


def test_every_package_is_in_the_picture_once() -> None:
    shown = [name for names in LAYERS for name in names]
    assert len(shown) == len(set(shown))
    assert set(shown) == packages() - {"__init__", "testing"}


@pytest.mark.parametrize("package", sorted(packages() - {"__init__", "testing"}))
def test_imports_point_down(package: str) -> None:
    home = PACKAGE / package
    files = home.rglob("*.py") if home.is_dir() else [home.with_suffix(".py")]
    for file in files:
        up = {name for name in imported(file) if name != package and LEVELS.get(name, -1) <= LEVELS[package]}
        assert not up, f"{file.relative_to(ROOT)} imports {sorted(up)}"


def exported(package: str) -> set[str]:
    """Names in `__all__` of a package; none where it has no front door."""
    door = PACKAGE / package / "__init__.py"
    body = ast.parse(door.read_text(encoding="utf-8")).body if door.exists() else []
    lists = (node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    return {name for found in lists for name in ast.literal_eval(found)}


EXPORTED = {package: exported(package) for package in packages()}


def past_front_doors(source: str, package: str) -> Iterator[str]:
    """Names that are imported from a module of another package, which exports them itself."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom):
            continue
        front, _, rest = (node.module or "").partition(".")
        home, _, module = rest.partition(".")
        if front == "hoodie" and module and home != package:
            yield from (f"{rest}.{alias.name}" for alias in node.names if alias.name in EXPORTED[home])


def test_what_a_package_exports_is_imported_from_it() -> None:
    rooms = {path: path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES.values()}
    found = {path: list(past_front_doors(path.read_text(encoding="utf-8"), room)) for path, room in rooms.items()}
    assert not {path: names for path, names in found.items() if names}
    inside = "from hoodie.storage.contract import FileInfo\n"
    assert list(past_front_doors(inside, "view")) == ["storage.contract.FileInfo"]
    assert not list(past_front_doors(inside, "storage"))


def test_readme_has_the_same_picture() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert picture_after("Packages import downwards only", page) == LAYERS


def test_no_file_imports_one_that_imports_it_in_turn() -> None:
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
    assert not circle({name: set(targets(tree)) - {name} for name, tree in trees.items()})


def test_only_the_command_line_imports_the_front_of_all() -> None:
    """`hoodie` loads every package by a string: who imports it closes a circle that the graph of imports has not."""
    within = {name: path for name, path in FILES.items() if name.split(".")[1:2] not in (["cli"], ["testing"])}
    assert not [name for name, path in within.items() if "hoodie" in targets(ast.parse(path.read_text("utf-8")))]


def test_a_circle_is_found_and_an_import_for_types_is_none() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not circle({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    aside = "if TYPE_CHECKING:\n    from hoodie.table import Table\n"
    assert not list(targets(ast.parse(aside)))
    assert list(targets(ast.parse("def f():\n    from hoodie.table import table, Table\n"))) == [
        "hoodie.table.table",
        "hoodie.table",
    ]


def test_who_imports_by_a_string_is_known_with_the_reason() -> None:
    sources = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    found = {name for name, source in sources.items() if re.search(r"\b(import_module|__import__)\(", source)}
    assert found == set(IMPORTED_BY_STRING)


def test_an_import_inside_a_function_says_why() -> None:
    found = {name: list(hidden_imports(path.read_text(encoding="utf-8"))) for name, path in FILES.items()}
    assert not {name: some for name, some in found.items() if some}


def test_only_a_reason_excuses_an_import_inside_a_function() -> None:
    hidden = "def f():\n    import pandas  # noqa: PLC0415\n"
    assert list(hidden_imports(hidden))
    assert not list(hidden_imports(hidden.replace("0415", "0415 - optional")))
    assert not list(hidden_imports(hidden.replace("    import", "    # Optional.\n    import")))


def test_readme_has_one_sentence_for_every_package() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `hoodie\.(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert set(told) == packages() - {"__init__"}
    assert all(sentence.endswith(".") for sentence in told.values())

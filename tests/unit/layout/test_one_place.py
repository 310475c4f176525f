"""One room converts paths: no other names prefixes, folders of roots or owner objects, or goes around the storage."""

from __future__ import annotations

import re
from pathlib import Path

import hoodie

SOURCES = Path(hoodie.__file__).parent

RAW = {
    "layout": "converts them",
    "services/dropping.py": "gives the folders of roots up",
    "services/relayout": "moves files from place to place",
    "services/repair": "lists what lies under all prefixes",
    "services/spread.py": "counts what lies where",
    "testing": "makes tables",
    "view/listing.py": "lists each prefix once",
    "write/overwrite.py": "deletes what lies under all prefixes",
    "write/layout_options.py": "claims the folders of roots",
}
"""Who knows that there are several stores, and why."""

KNOWS = re.compile(r"FederatedStorage|\.physical\(|physical\(|\.roots\[|OWNERS_DIR|layout\.place\(|layout\.owner")
ASKS_FOR_A_NAME = {"cli/files.py", "spark/reader.py", "table/table.py"}
"""Who opens files itself, and asks for the name under which they lie."""


def knowing() -> set[str]:
    return {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if KNOWS.search(path.read_text(encoding="utf-8"))
    }


def test_only_these_rooms_know_of_several_stores() -> None:
    found = {name for name in knowing() if not any(name.startswith(room) for room in RAW)}
    assert found <= ASKS_FOR_A_NAME
    assert {"view/listing.py", "layout/federated.py"} <= knowing()


def test_nobody_joins_the_base_path_and_a_file_into_a_name() -> None:
    joined = re.compile(r"absolute\(\"\"\)\}?/|f\"\{(?:root|base)\}/\{|\.uri\}/\{")
    found = {
        str(path.relative_to(SOURCES)): joined.findall(path.read_text(encoding="utf-8"))
        for path in SOURCES.rglob("*.py")
        if "testing" not in path.parts
    }
    assert {name for name, uses in found.items() if uses} <= {
        "server/discovery.py",
        "storage/nested.py",
        "storage/object.py",
        "storage/memory.py",
    }

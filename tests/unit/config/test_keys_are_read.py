"""What the registry calls implemented is really looked at by some code, or only decides what is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hoodie
from hoodie.config import ConfigKey, all_keys, resolve, spellings
from hoodie.errors import Unsupported

SOURCES = Path(hoodie.__file__).parent

# Keys no code reads: one way of doing things is there, `resolve` refuses a value that asks for another.
REFUSAL_ONLY = {
    "hoodie.allow.empty.commit",
    "hoodie.base.file.format",
    "hoodie.merge.allow.duplicate.on.inserts",
    "hoodie.write.concurrency.mode",
}
# Markers are always files of their own, which a timeline server of the JVM would only write in batches. Commits are all
# that Hudi counts to start a clean.
ACCEPTED_ONLY = {"hoodie.write.markers.type", "hoodie.clean.trigger.strategy"}
# Keys read by their prefix and the rest of their names.
FAMILIES = ("hoodie.keygen.timebased.",)


def _texts_in_code() -> set[str]:
    """All string constants of the package that are not documentation and not parts of longer messages."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        if "testing" in path.relative_to(SOURCES).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def _is_read(entry: ConfigKey, texts: set[str]) -> bool:
    family = next((prefix for prefix in FAMILIES if entry.key.startswith(prefix)), None)
    if family is not None and entry.key.removeprefix(family) in texts:
        return True
    return any(name in texts for name in (entry.key, *spellings(entry)))


def test_every_implemented_key_is_read_or_decides_what_is_refused() -> None:
    texts = _texts_in_code()
    known = REFUSAL_ONLY | ACCEPTED_ONLY
    unread = {
        entry.key
        for entry in all_keys()
        if entry.kind == "implemented" and entry.alias_of is None and not _is_read(entry, texts)
    }
    assert unread - known == set(), "implemented in the registry, but no code reads it"
    assert known <= {entry.key for entry in all_keys()}


@pytest.mark.parametrize("key", sorted(REFUSAL_ONLY))
def test_keys_that_are_not_read_refuse_what_they_cannot_do(key: str) -> None:
    entry = next(entry for entry in all_keys() if entry.key == key)
    assert entry.later
    for value in entry.later:
        with pytest.raises(Unsupported):
            resolve({key: value}, purpose="read" if entry.scope == "read" else "write")
    for value in entry.values:
        resolve({key: value})

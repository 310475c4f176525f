"""The law of options: acted on, or without effect on what is stored, promised or returned, or an error.

Every key of the registry has its answer: what it calls implemented is looked at by some code or decides what is
refused, what has no effect says why, what is not there yet refuses the values that ask for it, and a detail belongs to
a setting that is refused when it is on.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hoodie
from hoodie.config import ConfigKey, Purpose, all_keys, lookup, resolve, spellings
from hoodie.errors import Unsupported

SOURCES = Path(hoodie.__file__).parent

# Keys no code reads: one way of doing things is there, `resolve` refuses a value that asks for another.
REFUSAL_ONLY = {
    "hoodie.allow.empty.commit",
    "hoodie.base.file.format",
    "hoodie.index.hbase.security.authentication",
    "hoodie.merge.allow.duplicate.on.inserts",
}
# Commits are all that Hudi counts to start a clean.
ACCEPTED_ONLY = {"hoodie.clean.trigger.strategy"}
# Keys read by their prefix and the rest of their names.
FAMILIES = ("hoodie.keygen.timebased.", "fs.s3a.")


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


def _askers(entry: ConfigKey) -> tuple[str, ...]:
    """Values of a key that ask for what is not there yet."""
    named = tuple(value for value in entry.later if value != "*")
    if "*" not in entry.later:
        return named
    match entry.type:
        case "flag":
            return (*named, "false" if entry.default == "true" else "true")
        case "integer" | "number":
            return (*named, str(int(entry.default or 0) + 1))
        case _:
            return (*named, "com.example.Other")


def _purposes(entry: ConfigKey) -> tuple[Purpose, ...]:
    return ("write", "read") if entry.scope == "both" else (entry.scope,)


@pytest.mark.parametrize("entry", [one for one in all_keys() if one.alias_of is None], ids=lambda one: one.key)
def test_every_key_has_an_answer(entry: ConfigKey) -> None:
    name = entry.key.replace(".*", ".anything")
    match entry.kind:
        case "no_meaning_here":
            assert entry.reason
            assert not entry.later
            assert not entry.part_of
        case "not_yet":
            assert bool(entry.later) != bool(entry.part_of), "neither refused nor a detail of what is"
        case "implemented":
            assert not entry.part_of
    if entry.part_of is not None:
        head = lookup(entry.part_of)
        assert head.later, "what it details is not refused"
        assert head.canonical == head.key
    for value in _askers(entry):
        for purpose in _purposes(entry):
            for spelling in (name, *(one for one in spellings(entry) if not entry.is_family)):
                with pytest.raises(Unsupported) as caught:
                    resolve({spelling: value}, purpose=purpose)
                assert spelling in caught.value.cause
                assert caught.value.remedy
    if entry.default and not entry.is_family:
        for purpose in _purposes(entry):
            resolve({entry.key: entry.default}, purpose=purpose)


@pytest.mark.parametrize(
    "options",
    [
        {"parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"},
        {"parquet.encryption.footer.key": "k"},
        {"spark.hadoop.parquet.encryption.column.keys": "k:ssn"},
        {"Parquet.Encryption.Footer.Key": "k"},
        {"parquet.bloom.filter.enabled#id": "true"},
        {"fs.gs.encryption.key": "k"},
        {"hoodie.storage.layout.type": "BUCKET"},
        {"hoodie.storage.layout.type": "BUCKET", "hoodie.index.type": "SIMPLE"},
        {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.NoopLockProvider"},
    ],
)
def test_what_would_change_bytes_or_promises_is_refused_by_any_of_its_names(options: dict[str, str]) -> None:
    with pytest.raises(Unsupported):
        resolve(options)


def test_a_setting_of_hadoop_leads_to_hudis_own_key() -> None:
    with pytest.raises(Unsupported, match=r"Leave parquet\.block\.size out or give hoodie\.parquet\.block\.size"):
        resolve({"parquet.block.size": "1048576"})


def test_the_layout_of_a_bucket_index_is_what_is_done_anyway() -> None:
    resolve({"hoodie.storage.layout.type": "BUCKET", "hoodie.index.type": "BUCKET"})

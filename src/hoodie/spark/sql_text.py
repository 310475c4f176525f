"""SQL statements that name Hudi tables: which tables a query reads by path, and what else a statement wants of `hudi`.

Spark finds tables of the format ``hudi.`/path` `` only through classes on its class path. So a query's text gets a
placeholder for each such relation, and PySpark itself puts a DataFrame there (`spark.sql("... {t}", t=frame)`).

1. Text in quotes and comments is left alone; nothing else is understood here than the relation itself and a time that
   stands behind it (``hudi.`/path` TIMESTAMP AS OF '2024-01-01'``).
2. Whatever else names the format (`CREATE TABLE ... USING hudi`, `INSERT INTO hudi.`...) is told apart, not guessed at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ASIDE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/"""
_NAME = r"`?(?:org\.apache\.)?hudi`?"
_AS_OF = r"""\s+(?:FOR\s+)?(?:SYSTEM_)?(?:TIMESTAMP|TIME|VERSION)\s+AS\s+OF\s+('[^'\\]*'|"[^"\\]*"|\d+)"""
_RELATION = re.compile(
    rf"({_ASIDE})|(?<![\w.`]){_NAME}\s*\.\s*`((?:[^`]|``)+)`(?:{_AS_OF})?", re.IGNORECASE | re.DOTALL
)
_USING = re.compile(rf"({_ASIDE})|\bUSING\s+{_NAME}(?![\w.`])", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:SELECT|WITH|FROM)\b", re.IGNORECASE | re.DOTALL)
_VIEW = re.compile(
    rf"(?:\s|--[^\n]*\n|/\*.*?\*/)*CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW\b.*?\bUSING\s+{_NAME}",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class PathRelation:
    """A table a query names by path, as of a time if it says one."""

    path: str
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class PathQuery:
    """A query as a template: `{hoodie_0}`, `{hoodie_1}` ... stand for the relations."""

    template: str
    relations: tuple[PathRelation, ...]


def quoted(name: str) -> str:
    """A name of a column as SQL has it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def mentions_hudi(sql: str) -> bool:
    """Whether the statement uses the format at all."""
    if "hudi" not in sql.lower():
        return False
    return any(found[1] is None for regex in (_RELATION, _USING) for found in regex.finditer(sql))


def is_temporary_view(sql: str) -> bool:
    """Whether the statement is `CREATE TEMPORARY VIEW ... USING hudi`."""
    return _VIEW.match(sql) is not None


def parse_path_query(sql: str, *, is_template: bool = False) -> PathQuery | None:
    """The query with its relations taken out; None when the statement is no query, or reads nothing by path.

    `is_template` says that braces in the text already mean something to PySpark; otherwise they are kept as they are.
    """
    if _QUERY.match(sql) is None or _has_using(sql):
        return None
    pieces: list[str] = []
    relations: list[PathRelation] = []
    at = 0
    for found in _RELATION.finditer(sql):
        if found[2] is None:
            continue
        pieces += [_plain(sql[at : found.start()], is_template), f"{{hoodie_{len(relations)}}}"]
        relations.append(PathRelation(found[2].replace("``", "`"), found[3].strip("'\"") if found[3] else None))
        at = found.end()
    if not relations:
        return None
    return PathQuery("".join([*pieces, _plain(sql[at:], is_template)]), tuple(relations))


def _has_using(sql: str) -> bool:
    return any(found[1] is None for found in _USING.finditer(sql))


def _plain(text: str, is_template: bool) -> str:
    return text if is_template else text.replace("{", "{{").replace("}", "}}")

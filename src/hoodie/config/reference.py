"""The reference pages of the option keys, as Markdown text made from the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from hoodie.config.registry import ConfigKey, Kind, all_keys, differences, lookup
from hoodie.config.values import accepted

_KIND_WORDS: dict[Kind, str] = {"implemented": "yes", "no_meaning_here": "no effect", "not_yet": "not yet"}

_INTRODUCTION = """\
# Configuration reference

Made by `hoodie config --markdown > docs/config.md` from the registry in `src/hoodie/config/registry.tsv`; a test fails
when it is out of date. `hoodie config KEY` explains one key.

The keys are Apache Hudi's (1.2.0, and those of 0.15 that scripts still pass), plus a few of `hoodie`'s
own. An unknown `hoodie.*` or `fs.s3a.*` key is an error that names the nearest known key, and so is a name without the
prefix that can only mean one of them (`primaryKey`, `recordkey.field`). The column *here* says

* **yes**: it does what it says; values listed as *not yet* are refused.
* **no effect**: it changes nothing that is stored, promised or returned, for the reason given; accepted, one log line.
* **not yet**: it would change what is stored or promised. A value that asks for it is refused by what the key is about
  (writes, reads, streams; the others do nothing with it), an "off" value or the default is accepted.
* **detail**: it details another setting that is *not yet*, and says nothing while that one is off; accepted, one log
  line. Turning the other one on is what is refused.

What goes before, from the first, two spellings of a setting counting as one:

1. options of the call;
2. options the table was opened with;
3. in Spark, those of the session: `spark.conf.set("hoodie....")`, then `spark.hoodie.*` (`spark-submit --conf`,
   `spark-defaults.conf`);
4. `hudi-defaults.conf` in the folder that the environment variable `HUDI_CONF_DIR` names, then in `/etc/hudi/conf`,
   as Hudi reads them, once per process: of the process that plans, for reads and writes, the command line included;
5. the defaults below.

The same rules hold wherever an option comes from. A write of a Spark session whose Hadoop configuration encrypts
parquet files is refused.

A test walks all keys and fails on one without such an answer. Older and stored spellings of one setting are honoured;
two of them with different values are an error.
"""


def reference_markdown() -> str:
    """All keys by topic, then the deliberate differences from Hudi's defaults."""
    parts = [_INTRODUCTION, "## Defaults that differ from Hudi's on purpose\n", differences_markdown()]
    for group, entries in groupby(all_keys(), key=lambda entry: entry.group):
        parts.append(f"## {group}\n")
        parts.append(_table(("key", "default", "here", "since", "meaning"), _reference_rows(entries)))
    return "\n".join(parts)


def differences_markdown() -> str:
    """Table of the defaults that differ from Hudi's on purpose."""
    rows = (
        (f"`{entry.key}`", _code(entry.hudi_default), _code(entry.our_default), entry.difference or "")
        for entry in differences()
    )
    return _table(("key", "Hudi 1.2.0", "hoodie", "why"), rows)


def _reference_rows(entries: Iterable[ConfigKey]) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        yield (
            f"`{entry.key}`",
            "" if entry.alias_of else _code(entry.default),
            "detail" if lookup(entry.canonical).part_of else _KIND_WORDS[entry.kind],
            entry.since or "",
            _meaning(entry),
        )


def _meaning(entry: ConfigKey) -> str:
    sentences = [entry.meaning]
    if entry.alias_of:
        sentences.append(f"Same as `{entry.alias_of}`")
    elif entry.values and entry.type != "flag":
        sentences.append(f"Accepts {accepted(entry)}")
    if entry.later and "*" not in entry.later and not entry.alias_of:
        sentences.append(f"Not yet: {', '.join(entry.later)}")
    elif entry.later and not entry.values and not entry.alias_of:
        sentences.append("Every value is refused")
    elif entry.later and not entry.alias_of:
        sentences.append("Others are refused")
    if entry.unless:
        sentences.append("Accepted beside " + ", ".join(f"`{key}={value}`" for key, value in entry.unless))
    if entry.part_of:
        sentences.append(f"Detail of `{entry.part_of}`")
    if entry.reason:
        sentences.append(f"No effect: {entry.reason}")
    if entry.aliases:
        sentences.append("Also " + ", ".join(f"`{alias}`" for alias in entry.aliases))
    if entry.deprecated:
        sentences.append(f"Deprecated since {entry.deprecated}")
    if entry.removed:
        sentences.append(f"Gone from Hudi in {entry.removed}")
    return ". ".join(sentences).replace("|", "\\|") + "."


def _code(value: str | None) -> str:
    if value is None:
        return "–"
    return f"`{value}`" if value else "(empty)"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

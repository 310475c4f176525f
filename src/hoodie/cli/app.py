"""The command `hoodie` itself: its commands, its common options, and how it fails.

1. A command's module is loaded when that command runs, so `hoodie config` does not wait for pyarrow, nor any for Spark.
2. What goes wrong is said in one message with cause and remedy on stderr, with exit status 2; a traceback only appears
   after `hoodie --debug`. Status 1 is left to `hoodie validate`, for findings.
"""

from __future__ import annotations

import importlib
import logging
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import hoodie
from hoodie.errors import HudiError

FAILED = 2

# In the order of `hoodie --help`; each command is `run` in the module of its name.
_COMMANDS = {
    "query": "Show, print or save the rows of a query.",
    "write": "Write rows to a table, which is created by the first write.",
    "timeline": "Show the instants of a table's active timeline, oldest first.",
    "files": "Show the newest file slice of every file group, by partition.",
    "validate": "Check a table's files and timeline.",
    "config": "Explain a configuration key, or list the keys that contain some text.",
}


class _Commands(TyperGroup):
    """The group of commands: loads them late and turns errors into messages."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(importlib.import_module(f"hoodie.cli.{cmd_name}").run)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (HudiError, OSError, ImportError) as error:
            if ctx.params.get("debug") or isinstance(error, BrokenPipeError):
                raise
            typer.secho(failure_text(error), fg=typer.colors.RED, err=True)
            raise typer.Exit(FAILED) from error


app = typer.Typer(cls=_Commands, add_completion=False, no_args_is_help=True, rich_markup_mode=None)
app.pretty_exceptions_enable = False


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hoodie {hoodie.__version__}")
        raise typer.Exit


@app.callback()
def common(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show log lines, and tracebacks of errors.")] = False,
) -> None:
    """Apache Hudi tables from the command line."""
    level = logging.DEBUG if debug else logging.WARNING
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("hoodie").setLevel(level)


def failure_text(error: BaseException) -> str:
    """One message for people: the kind of error, its cause, and on a second line what to do."""
    if isinstance(error, HudiError):
        remedy = f"\n  {error.remedy}" if error.remedy else ""
        return f"{type(error).__name__}: {error.cause}{remedy}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(("pyspark", "py4j")):
        return "Invalid: Spark is not installed\n  pip install 'hoodie[spark]', or use --engine local"
    return f"{type(error).__name__}: {error}\n  hoodie --debug ... shows where this comes from"


def main() -> None:
    """Entry point of the command `hoodie`."""
    app()

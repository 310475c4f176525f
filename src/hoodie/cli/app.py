"""The command `hoodie` itself: its commands, its common options, and how it fails.

1. A command's module is loaded when that command runs, so `hoodie timeline` does not wait for pyarrow, nor any for
   Spark. For the same reason arguments are parsed by the standard library and not by a framework that loads more
   than most commands.
2. What goes wrong is said in one message with cause and remedy on stderr, with exit status 2; a traceback only appears
   with `--debug`. Status 1 is left to `hoodie validate` and `hoodie doctor`, for what they find.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

import hoodie
from hoodie.cli.printing import VisibleFormatter
from hoodie.errors import HudiError
from hoodie.present.plain import visible_text
from hoodie.services.registry import REGISTERED, load_service

FAILED = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

# In the order of `hoodie --help`. Each command is a module of its name with `define(parser)` and `run(arguments)`; a
# service without one has what `hoodie.cli.service` makes of it.
_COMMANDS = {
    "query": "show, print or save the rows of a query",
    "write": "write rows of files to a table",
    "append": "write them to new files, without a look at the others",
    "timeline": "show what happened to a table",
    "writers": "who is at work on a table, since when",
    "files": "show which files make up a table",
    "validate": "check a table's files and timeline",
    "doctor": "how a table is, with the remedy for each concern",
    "report": "an HTML page about a table: health, timeline, where bytes lie",
    **{service.command: service.summary for service in REGISTERED.values()},
    "savepoint": "list, make or delete savepoints",
    "index": "list, make or drop indexes, or advise which one to write with",
    "serve": "a timeline service for many tables, over HTTP",
    "config": "explain configuration keys",
}
_SERVICES = {service.command: service for service in REGISTERED.values()}
_OWN_MODULE = ("compact",)
_WITHOUT_ARROW = ("timeline", "config")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status after running the command line `arguments` (default: those of the process)."""
    said = _root_parser().parse_args(arguments)
    if said.command is None:
        _root_parser().print_help()
        return 0
    debug = said.debug or "--debug" in said.rest
    _start_logging(debug, has_times=said.command == "serve")
    try:
        if arguments is None and said.command not in _WITHOUT_ARROW:
            _load_arrow()  # a process of our own
        return _run(said.command, said.rest)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:
        if debug:
            raise
        print(visible_text(failure_text(error)), file=sys.stderr)
        return FAILED


def failure_text(error: Exception) -> str:
    """One message for people: the kind of error, its cause, and on a second line what to do."""
    if isinstance(error, HudiError):
        remedy = f"\n  {error.remedy}" if error.remedy else ""
        return f"{type(error).__name__}: {error.cause}{remedy}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(("pyspark", "py4j")):
        return "Invalid: Spark is not installed\n  pip install 'hoodie[spark]', or use --engine local"
    return f"{type(error).__name__}: {error}\n  Add --debug to see where this comes from"


def _run(command: str, rest: Sequence[str]) -> int:
    registered = None if command in _OWN_MODULE else _SERVICES.get(command)
    module = importlib.import_module(f"hoodie.cli.{command if registered is None else 'service'}")
    told = (module.__doc__ or "").partition(": ")[2].strip() if registered is None else registered.described()
    parser = argparse.ArgumentParser(f"hoodie {command}", description=told)
    parser.add_argument("--debug", action="store_true", help="show log lines, and the traceback of an error")
    if registered is not None:
        service = load_service(registered.name)
        module.define_service(parser, service)
        return int(module.run_service(parser.parse_args(rest), service))
    module.define(parser)
    return int(module.run(parser.parse_args(rest)))


def _load_arrow() -> None:
    """Loads pyarrow with as little else as possible. Its numpy starts a thread per core for matrices nobody has."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    importlib.import_module("hoodie.arrow_start").start_without_pandas()


def _root_parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<14}{summary}" for name, summary in _COMMANDS.items())
    parser = argparse.ArgumentParser(
        "hoodie",
        usage="hoodie [--debug] COMMAND ...",
        description="Apache Hudi tables from the command line.",
        epilog=f"commands:\n{commands}\n\n`hoodie COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hoodie {hoodie.__version__}")
    parser.add_argument("--debug", action="store_true", help="show log lines, and the traceback of an error")
    parser.add_argument("command", nargs="?", choices=tuple(_COMMANDS), metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _start_logging(debug: bool, *, has_times: bool) -> None:
    lines = logging.StreamHandler()
    lines.setFormatter(VisibleFormatter(f"{'%(asctime)s ' if has_times else ''}%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    logging.getLogger("hoodie").setLevel(logging.DEBUG if debug else logging.WARNING)

"""`hoodie serve`: a timeline service for the tables below some folders or URLs, until it is stopped.

It answers Hudi's clients and ours: which files make a table. At / it has pages for people, at /metrics figures. With
`--markers` it writes the markers of their writes, else nothing.
"""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hoodie.cli.arguments import parse_options
from hoodie.config import Config, resolve
from hoodie.errors import Invalid
from hoodie.layout import open_table_storage
from hoodie.layout.access import OPTIONS
from hoodie.layout.opening import options_for_others
from hoodie.remote import DEFAULT_PORT
from hoodie.remote.asking import FIRST, ONLY
from hoodie.server import Service
from hoodie.server.marker_conflicts import Detection
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import MarkerService
from hoodie.server.stores.choice import (
    EMBEDDED_KV_STORE,
    MEMORY,
    MEMORY_BYTES,
    SPILL_FOLDER,
    SPILLABLE_DISK,
    TYPE,
    stores_of,
)

_ABOUT_MARKERS = {
    "marker-batch-threads": (20, "lists of markers of a write"),
    "marker-batch-interval-ms": (50, "between two batches"),
    "conflict-detector-initial-delay-ms": (
        0,
        "before markers of others are first looked at, for writers that detect conflicts early",
    ),
    "conflict-detector-period-ms": (30_000, "between two such looks"),
}
"""Arguments that need `--markers`: what they are if they are not given, and what they say."""
_OF_VIEWS = "hoodie.filesystem.view."
_STORES = {"memory": MEMORY, "disk": SPILLABLE_DISK, "rocksdb": EMBEDDED_KV_STORE}


def define(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--root", action="append", required=True, help="a folder or URL that tables lie below; may be repeated"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: this machine only)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 for a free one (default: %(default)s)")
    parser.add_argument("--token-file", type=Path, help="file with the token that requests must tell")
    parser.add_argument("--without-token", action="store_true", help="let others ask without one, as Hudi's clients do")
    parser.add_argument(
        "--allow-hudi-clients",
        action="store_true",
        help="let programs of this machine ask for the files of tables without the token, as Hudi's clients do",
    )
    parser.add_argument(
        "--markers", action="store_true", help="write the markers of running writes, too: else nothing is written"
    )
    for name, (otherwise, text) in _ABOUT_MARKERS.items():
        parser.add_argument(f"--{name}", type=int, help=f"{text} (default: {otherwise})")
    parser.add_argument("--name", action="append", default=[], help="another name of this machine; may be repeated")
    parser.add_argument(
        "--view-store",
        type=_store_name,
        choices=tuple(_STORES),
        help="keep views in memory (default), on disk beside a bounded share of memory, or in RocksDB, where the next "
        "service finds them (hoodie.filesystem.view.type)",
    )
    parser.add_argument(
        "--memory", type=int, metavar="MIB", help="memory of such a store (hoodie.filesystem.view.spillable.mem)"
    )
    parser.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a hoodie.filesystem.view.* or storage option; may be repeated",
    )


def run(said: Namespace) -> int:
    try:
        from hoodie.server import http  # noqa: PLC0415 - optional: needs the extra `server`
    except ModuleNotFoundError as error:
        raise Invalid(f"{error.name} is not installed", remedy="pip install 'hoodie[server]'") from error
    token = None if said.token_file is None else _read_token(said.token_file)
    if said.allow_hudi_clients and token is None:
        raise Invalid(
            "--allow-hudi-clients is about a token, and there is none", remedy="Add --token-file, or leave it out"
        )
    listening = http.Listening(said.host, said.port, token, http.named_hosts(said.name), said.allow_hudi_clients)
    http.ensure_guarded(listening, without_token=said.without_token)
    options = parse_options(said.option, example=f"{SPILL_FOLDER}=/tmp")
    lists, interval_ms, delay_ms, period_ms = _about_markers(said)
    batching, detection = Batching(lists, interval_ms / 1000), Detection(delay_ms / 1000, period_ms / 1000)
    view_config = _view_config(options, said)
    roots, passed = [full_root(root, options) for root in said.root], options_for_others(options)
    markers = MarkerService(roots, passed, batching, detection=detection) if said.markers else None
    place = http.bound_socket(listening)
    service = Service(roots, passed, stores=stores_of(view_config))
    host = f"[{said.host}]" if ":" in said.host else said.host
    print(f"serving {', '.join(roots)} at http://{host}:{place.getsockname()[1]}", flush=True)
    before = signal.signal(signal.SIGTERM, _terminate)
    is_terminated = False
    try:
        http.server_of(service, listening, markers).run(sockets=[place])
    except _Terminated:
        is_terminated = True
    finally:
        signal.signal(signal.SIGTERM, before)
        service.close()
        with suppress(OSError):  # whoever read it may be gone
            print("stopped", flush=True)
    if is_terminated:
        signal.raise_signal(signal.SIGTERM)
    return 0


class _Terminated(BaseException):
    """The process was told to end."""


def _terminate(*_: object) -> None:
    """What the signal does while the service runs: its server ends what it does first, and then raises it again."""
    raise _Terminated


def full_root(root: str, options: Mapping[str, str]) -> str:
    """A root as clients spell what lies below it: a URL as it is, of a folder its full path.

    Raises:
        Invalid, Unsupported: nothing is named, or nothing can be opened there.
    """
    if not root.strip():
        raise Invalid(
            "--root is empty", remedy="Name a folder or URL that tables lie below; see that the shell variable is set"
        )
    if "://" in root:
        open_table_storage(root, options)
        return root
    return os.path.abspath(Path(root).expanduser())


def _store_name(text: str) -> str:
    """A kind of store by Hudi's name, too."""
    return {known: name for name, known in _STORES.items()}.get(text.upper(), text)


def _about_markers(said: Namespace) -> tuple[int, ...]:
    """What arguments say about markers, in the order of `_ABOUT_MARKERS`.

    Raises:
        Invalid: there are some, and no markers.
    """
    found = {name: getattr(said, name.replace("-", "_")) for name in _ABOUT_MARKERS}
    for name, value in found.items():
        if value is not None and not said.markers:
            raise Invalid(f"--{name} is about markers, and none are written", remedy="Add --markers, or leave it out")
    return tuple(_ABOUT_MARKERS[name][0] if value is None else value for name, value in found.items())


def _view_config(options: Mapping[str, str], said: Namespace) -> Config:
    """The options about views, as options or by arguments.

    Raises:
        Invalid: one cannot be so, has no effect, or says otherwise than an argument.
    """
    told = {key: value for key, value in options.items() if key.startswith("hoodie.")}
    config = resolve(told)
    for key in told:
        if not key.startswith(_OF_VIEWS) and key not in OPTIONS:
            raise Invalid(f"{key} has no effect on a service", remedy="Leave it out: writers and readers are told it")
    if config.text(TYPE) in (ONLY, FIRST):
        raise Invalid(
            f"{TYPE}={config.text(TYPE)} asks another server, and a service asks none",
            remedy="Leave it out, or say where views are kept: --view-store",
        )
    by_arguments = {}
    if said.view_store:
        by_arguments[TYPE] = _STORES[said.view_store]
        _ensure_same(config, TYPE, by_arguments[TYPE], "--view-store")
    if said.memory is not None:
        by_arguments[MEMORY_BYTES] = str(said.memory << 20)
        _ensure_same(config, MEMORY_BYTES, by_arguments[MEMORY_BYTES], "--memory")
    config = config.overridden(resolve(by_arguments))
    if said.memory is not None and config.text(TYPE) == MEMORY:
        raise Invalid(
            "--memory is about views on disk or in RocksDB, and they are in memory",
            remedy="Add --view-store disk or --view-store rocksdb, or leave it out",
        )
    if config.integer(MEMORY_BYTES) < 1 << 20:
        raise Invalid("A store of views needs at least 1 MiB", remedy=f"Raise --memory or {MEMORY_BYTES}")
    return config


def _ensure_same(config: Config, key: str, value: str, argument: str) -> None:
    if config.is_set(key) and config.text(key) != value:
        raise Invalid(f"{argument} and {key} contradict each other", remedy="Give one of them")


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Invalid(f"The token cannot be read from {path}: {reason}", remedy="Give a text file with it") from error

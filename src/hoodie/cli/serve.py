"""`hoodie serve`: a timeline service for the tables below some folders or URLs, until it is stopped.

It answers Hudi's clients and ours: which files make a table. At / it has pages for people, at /metrics figures. With
`--markers` it writes the markers of their writes, else nothing.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from hoodie.cli.arguments import parse_options
from hoodie.config import Config, resolve
from hoodie.errors import Invalid
from hoodie.layout import open_table_storage
from hoodie.layout.opening import options_for_others
from hoodie.remote import DEFAULT_PORT
from hoodie.server import Service
from hoodie.server.marker_conflicts import Detection
from hoodie.server.marker_folder import Batching
from hoodie.server.marker_service import MarkerService
from hoodie.server.stores.choice import EMBEDDED_KV_STORE, MEMORY, MEMORY_BYTES, SPILLABLE_DISK, TYPE, stores_of

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
    parser.add_argument(
        "--marker-batch-threads", type=int, default=20, help="lists of markers of a write (default: %(default)s)"
    )
    parser.add_argument(
        "--marker-batch-interval-ms", type=int, default=50, help="between two batches (default: %(default)s)"
    )
    parser.add_argument(
        "--conflict-detector-initial-delay-ms",
        type=int,
        default=0,
        help="before markers of others are first looked at, for writers that detect conflicts early",
    )
    parser.add_argument(
        "--conflict-detector-period-ms", type=int, default=30_000, help="between two such looks (default: %(default)s)"
    )
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
    options = parse_options(said.option)
    batching = Batching(said.marker_batch_threads, said.marker_batch_interval_ms / 1000)
    detection = Detection(said.conflict_detector_initial_delay_ms / 1000, said.conflict_detector_period_ms / 1000)
    roots, passed = [full_root(root, options) for root in said.root], options_for_others(options)
    markers = MarkerService(roots, passed, batching, detection=detection) if said.markers else None
    place = http.bound_socket(listening)
    service = Service(roots, passed, stores=stores_of(_view_config(options, said)))
    host = f"[{said.host}]" if ":" in said.host else said.host
    print(f"serving {', '.join(roots)} at http://{host}:{place.getsockname()[1]}", flush=True)
    try:
        http.server_of(service, listening, markers).run(sockets=[place])
    finally:
        service.close()
    return 0


def full_root(root: str, options: Mapping[str, str]) -> str:
    """A root as clients spell what lies below it: a URL as it is, of a folder its full path.

    Raises:
        Invalid, Unsupported: nothing can be opened there.
    """
    if "://" in root:
        open_table_storage(root, options)
        return root
    return os.path.abspath(Path(root).expanduser())


def _store_name(text: str) -> str:
    """A kind of store by Hudi's name, too."""
    return {known: name for name, known in _STORES.items()}.get(text.upper(), text)


def _view_config(options: Mapping[str, str], said: Namespace) -> Config:
    """The options about views. An argument that says the same as an option comes before it.

    Raises:
        Invalid: one cannot be so.
    """
    told = {key: value for key, value in options.items() if key.startswith("hoodie.")}
    if said.view_store:
        told[TYPE] = _STORES[said.view_store]
    if said.memory is not None:
        told[MEMORY_BYTES] = str(said.memory << 20)
    config = resolve(told)
    if config.integer(MEMORY_BYTES) < 1 << 20:
        raise Invalid("A store of views needs at least 1 MiB", remedy=f"Raise --memory or {MEMORY_BYTES}")
    return config


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Invalid(f"The token cannot be read from {path}: {reason}", remedy="Give a text file with it") from error

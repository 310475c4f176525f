"""The timeline server that options name (Hudi's keys), and views by it.

1. `hoodie.filesystem.view.type` decides: REMOTE_ONLY asks the server and nobody else, REMOTE_FIRST the table itself
   where the server does not answer. With every other type no server is asked.
2. Who decides on a view decides on the state he began on: each question says which timeline that is, and a server that
   has another one does not answer (`remote_view`).
3. A server that runs in this process is asked without HTTP (`in_process`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.fileview import FileSystemView, WriterView, open_file_view
from hoodie.fileview.log_sizes import with_stored_sizes
from hoodie.remote.connection import (
    NO_RETRIES,
    Connection,
    Retries,
    ServerAddress,
    connection_to,
    is_host,
    parse_server,
)
from hoodie.remote.in_process import source_at
from hoodie.remote.json_values import short
from hoodie.remote.remote_view import FallingBackView, RemoteView
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.view import LogFile, PartitionChoice, PartitionFiles, View, load_view

if TYPE_CHECKING:
    from hoodie.metadata import MetadataState

TYPE: Final = "hoodie.filesystem.view.type"
HOST: Final = "hoodie.filesystem.view.remote.host"
PORT: Final = "hoodie.filesystem.view.remote.port"
TOKEN: Final = "hoodie.filesystem.view.remote.token"
TIMEOUT: Final = "hoodie.filesystem.view.remote.timeout.secs"
ONLY: Final = "REMOTE_ONLY"
FIRST: Final = "REMOTE_FIRST"

_RETRY: Final = "hoodie.filesystem.view.remote.retry.enable"
_TIMES: Final = "hoodie.filesystem.view.remote.retry.max_numbers"
_FIRST_MS: Final = "hoodie.filesystem.view.remote.retry.initial_interval_ms"
_LIMIT_MS: Final = "hoodie.filesystem.view.remote.retry.max_interval_ms"
_MAX_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class AskedServer:
    """Where a server is asked, and whether somebody else is when it does not answer."""

    address: ServerAddress
    falls_back: bool = True
    retries: Retries = NO_RETRIES

    def connection(self) -> Connection:
        """What asks it. The same one for all who ask in the same way."""
        return connection_to(self.address, self.retries)


def asked_server(config: Config) -> AskedServer | None:
    """The server that options name; None where none is to be asked.

    Raises:
        Invalid: this is no host, or no request can tell such a token.
    """
    kind = config.text(TYPE)
    if kind not in (ONLY, FIRST):
        return None
    address = ServerAddress(
        _host(config.text(HOST)), config.integer(PORT), config.optional(TOKEN), float(config.integer(TIMEOUT))
    )
    retries = NO_RETRIES
    if config.flag(_RETRY):
        times = min(config.integer(_TIMES), _MAX_TRIES)
        retries = Retries(times, config.integer(_FIRST_MS) / 1000, config.integer(_LIMIT_MS) / 1000)
    return AskedServer(address, kind == FIRST, retries)


def _host(text: str) -> str:
    """The host that an option names."""
    if is_host(text):
        return text
    try:
        meant = parse_server(text)
    except Invalid:
        remedy = f"Write the name or address of a machine; its port is {PORT}"
    else:
        remedy = f"Write {HOST}={meant.host}, and the port as {PORT}={meant.port}"
    raise Invalid(f"{HOST}={short(text)} is no host", remedy=remedy, value=text)


def options_of(address: ServerAddress, kind: str = FIRST) -> dict[str, str]:
    """The options that name a server."""
    token = {} if address.token is None else {TOKEN: address.token}
    timeout = str(max(1, round(address.timeout_s)))
    return {TYPE: kind, HOST: address.host, PORT: str(address.port), TIMEOUT: timeout, **token}


def asked_options(server: ServerAddress | str, given: Mapping[str, str]) -> dict[str, str]:
    """The options that name `server`, which a caller names beside options of his own: these say whether it is asked
    alone (`REMOTE_ONLY`), else the table itself is asked for what it does not answer.

    Raises:
        Invalid: it is no address, or the options ask for no server.
    """
    if not isinstance(server, str | ServerAddress):
        raise Invalid(
            f"{short(repr(server))} is no address of a timeline server", remedy='Write server="host:port"', value=server
        )
    address = parse_server(server, given.get(TOKEN)) if isinstance(server, str) else server
    kind = given.get(TYPE, FIRST).strip().upper()
    if kind not in (ONLY, FIRST):
        raise Invalid(
            f"A server is named, and {TYPE}={kind} asks for none", remedy=f"Leave {TYPE} out, or say {FIRST} or {ONLY}"
        )
    waits = {TIMEOUT: given[TIMEOUT]} if isinstance(server, str) and TIMEOUT in given else {}
    return options_of(address, kind) | waits


def open_asked_view(
    server: AskedServer | None,
    handle: TableHandle,
    timeline: Timeline,
    *,
    use_metadata: bool = True,
    engine: Engine | None = None,
    plans: PendingPlans | None = None,
) -> FileSystemView:
    """The view of a table by the server, if one is asked; else, and where it falls back, as `open_file_view`."""

    def own() -> FileSystemView:
        storage, config = handle.storage, handle.config
        return open_file_view(storage, config, timeline, use_metadata=use_metadata, engine=engine, plans=plans)

    return own() if server is None else _by_server(server, handle, timeline, plans, own)


def open_writer_view(
    server: AskedServer | None,
    handle: TableHandle,
    timeline: Timeline,
    state: MetadataState | None = None,
    plans: PendingPlans | None = None,
) -> FileSystemView:
    """The same for the next write of the table: else, and where it falls back, a `WriterView`."""

    def own() -> FileSystemView:
        return WriterView(handle, timeline, state, plans)

    if server is None:
        return own()
    served = _by_server(server, handle, timeline, plans, own)
    if handle.profile.log_naming.has_one_write_per_file:
        return served
    return _SizedView(served, handle, plans or PendingPlans(handle.storage, timeline))


def _by_server(
    server: AskedServer,
    handle: TableHandle,
    timeline: Timeline,
    plans: PendingPlans | None,
    own: Callable[[], FileSystemView],
) -> FileSystemView:
    source = source_at(server.address.text)
    if source is not None:
        return source.open_view(handle, timeline, plans, own if server.falls_back else None)
    remote = RemoteView(server.connection(), handle.storage, timeline, plans, handle.config)
    return FallingBackView(remote, own, handle.storage, plans) if server.falls_back else remote


class _SizedView:
    """`served`, with the sizes that storage says log files have: in version 6 blocks of failed writes, and commands
    that take them back, are behind what the last settled write knew. One call for each log file.
    """

    def __init__(self, served: FileSystemView, handle: TableHandle, plans: PendingPlans) -> None:
        self.timeline = served.timeline
        self._served = served
        self._handle = handle
        self._plans = plans

    @property
    def lists_uncommitted(self) -> bool:
        return self._served.lists_uncommitted

    def partitions(self) -> tuple[str, ...]:
        return self._served.partitions()

    def files(self, partitions: Collection[str] | None = None) -> tuple[PartitionFiles, ...]:
        found = self._served.files(partitions)
        sized = with_stored_sizes(self._handle.storage, [one for files in found for one in files.logs])
        return tuple(replace(files, logs=tuple(sized[one.path] for one in files.logs)) for files in found)

    def load(self, partitions: Collection[str] | None = None) -> View:
        files, is_settled = self.files(partitions), not self.lists_uncommitted
        compactions = self._plans.compactions()
        return load_view(self._handle.storage, self.timeline, files, compactions, are_settled=is_settled)

    def load_chosen(self, choice: PartitionChoice) -> View:
        return self.load(choice.of(self.partitions()))

    def committed_logs(self, logs: Collection[LogFile]) -> Mapping[str, LogFile]:
        return self._served.committed_logs(logs)

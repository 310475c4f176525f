"""Timeline servers as clients see them: their JSON, what is told to them, and the view that asks one."""

from hoodie.remote.asking import (
    AskedServer,
    asked_options,
    asked_server,
    open_asked_view,
    open_writer_view,
    options_of,
)
from hoodie.remote.connection import DEFAULT_PORT, Connection, ServerAddress, parse_server
from hoodie.remote.remote_view import FallingBackView, RemoteView, ViewServer

__all__ = [
    "DEFAULT_PORT",
    "AskedServer",
    "Connection",
    "FallingBackView",
    "RemoteView",
    "ServerAddress",
    "ViewServer",
    "asked_options",
    "asked_server",
    "open_asked_view",
    "open_writer_view",
    "options_of",
    "parse_server",
]

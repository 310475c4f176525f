"""Timeline servers as clients see them: their JSON, what is told to them, and the view that asks one."""

from hoodie.remote.connection import DEFAULT_PORT, Connection, ServerAddress, parse_server
from hoodie.remote.remote_view import FallingBackView, RemoteView, ViewServer

__all__ = ["DEFAULT_PORT", "Connection", "FallingBackView", "RemoteView", "ServerAddress", "ViewServer", "parse_server"]

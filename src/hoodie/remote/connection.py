"""Questions to a timeline server over HTTP, and its answers as JSON.

1. One connection for each thread is kept; one that the server closed meanwhile is made anew, once.
2. An answer is bounded in size, packed or not, and in time as a whole (`timed_http`). Whatever is wrong with it, or
   with the way there, is `Unavailable` with the address that was tried; with its `status` where the server itself says
   that it cannot.
3. A status of 400 says that client and server know different timelines (`Conflict`): asking again helps only with
   another timeline.
"""

from __future__ import annotations

import http.client
import json
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, HudiError, Invalid, Unavailable
from hoodie.remote.json_values import Json
from hoodie.remote.timed_http import TimedConnection, read_body

VIEW = "/v1/hoodie/view/"
DEFAULT_PORT = 26754


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a timeline server listens. `token`: what it wants to be told; `timeout_s`: for a question and its whole
    answer.
    """

    host: str
    port: int = DEFAULT_PORT
    token: str | None = None
    timeout_s: float = 60.0

    @property
    def text(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"


def parse_server(text: str, token: str | None = None, timeout_s: float = 60.0) -> ServerAddress:
    """The address in `host:port`, `host` or `http://host:port`.

    Raises:
        Invalid: it is none.
    """
    parts = urlsplit(text if "//" in text else f"//{text}", scheme="http")
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port or parts.path.strip("/") or parts.query:
        raise Invalid(f"{text!r} is no address of a timeline server", remedy="Write host:port", value=text)
    return ServerAddress(parts.hostname, port, token, timeout_s)


class Connection:
    """A timeline server at an address. Threads may share it."""

    def __init__(self, address: ServerAddress, env: Env | None = None) -> None:
        self.address = address
        self._env = env or SystemEnv()
        self._kept = threading.local()

    def ask(self, path: str, parameters: Mapping[str, str]) -> Json:
        """The answer to a question below `/v1/hoodie/view/`.

        Raises:
            Conflict: the server knows another timeline.
            Unavailable: it did not answer, or with what is no answer.
        """
        target = f"{VIEW}{path}?{urlencode(parameters)}"
        try:
            status, body = self._exchanged(target)
        except (OSError, http.client.HTTPException, zlib.error) as error:
            self._forget()
            raise self._unavailable(str(error) or type(error).__name__) from error
        if status == 200:
            try:
                return json.loads(body)
            except (ValueError, RecursionError) as error:
                raise self._unavailable("its answer is no JSON") from error
        raise self._refused(status, body)

    def _exchanged(self, target: str) -> tuple[int, bytes]:
        until = self._env.monotonic() + self.address.timeout_s
        was_kept = self._kept_connection() is not None
        try:
            return self._request(target, until)
        except (http.client.BadStatusLine, ConnectionError):
            if not was_kept:
                raise
            self._forget()  # closed by the server since the last question: asking is without effects, so once more
            return self._request(target, until)

    def _request(self, target: str, until: float) -> tuple[int, bytes]:
        connection = self._kept_connection()
        if connection is None:
            connection = TimedConnection(self.address.host, self.address.port, self._env.monotonic)
            self._kept.connection = connection
        connection.until = until
        headers = {"Accept-Encoding": "gzip"}
        if self.address.token:
            headers["Authorization"] = f"Bearer {self.address.token}"
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, read_body(connection, answer)

    def _kept_connection(self) -> TimedConnection | None:
        found: TimedConnection | None = getattr(self._kept, "connection", None)
        return found if found is not None and found.sock is not None else None

    def _forget(self) -> None:
        connection = getattr(self._kept, "connection", None)
        self._kept.connection = None
        if connection is not None:
            connection.close()

    def _refused(self, status: int, body: bytes) -> HudiError:
        said = body[:300].decode(errors="replace")
        if status == 400:
            return Conflict(
                f"The timeline server at {self.address.text} knows another timeline of the table",
                remedy="Open the table again",
                said=said,
            )
        return Unavailable(
            f"The timeline server at {self.address.text} cannot answer: {said or 'nothing said'}",
            remedy="See its log; without it the table can be read and written as well",
            address=self.address.text,
            status=status,
        )

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(
            f"The timeline server at {self.address.text} does not answer: {what}",
            remedy="See that it runs and can be reached from here",
            address=self.address.text,
        )

"""A timeline service asked without HTTP: what a `Connection` to it would answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hoodie.errors import Conflict, Unavailable
from hoodie.remote.json_values import Json
from hoodie.server import Service
from hoodie.server.routes import VIEW


class InProcessServer:
    """A `ViewServer` by a service. `asked` has the paths of all questions; it fails for the partitions in `broken`;
    where it `has_arrow` it answers with Arrow streams, too."""

    def __init__(self, service: Service, broken: tuple[str, ...] = ()) -> None:
        self.service = service
        self.asked: list[str] = []
        self.broken = broken
        self.is_down = False
        self.has_arrow = False

    def ask(self, path: str, parameters: Mapping[str, str]) -> Json:
        return json.loads(self._answer(path, parameters))

    def ask_files(self, path: str, parameters: Mapping[str, str]) -> bytes | None:
        return self._answer(path, parameters) if self.has_arrow else None

    def _answer(self, path: str, parameters: Mapping[str, str]) -> bytes:
        self.asked.append(path)
        if self.is_down:
            raise Unavailable("no connection")
        about = {parameters.get("partition"), *json.loads(parameters.get("partitions", "[]"))}
        if about.intersection(self.broken):
            raise Unavailable("it cannot", status=500)
        answer = self.service.answer("GET", VIEW + path, parameters)
        if answer.status == 400:
            raise Conflict("another timeline")
        if answer.status != 200:
            raise Unavailable(answer.body.decode(), status=answer.status)
        return answer.body

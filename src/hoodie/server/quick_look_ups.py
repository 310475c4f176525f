"""Plain questions about partitions of views that are kept, answered before the HTTP library looks at them.

1. Only what is known is answered, and only what is short: `Service.answer_at_once` says which. Everything else is left
   to the library, what is refused as well.
2. Headers and body are those that the library would send.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.responses import Response

from hoodie.server.packing import pack
from hoodie.server.plain_requests import PlainRequest
from hoodie.server.quick_answers import KeptAnswer
from hoodie.server.service import Service

MAX_TARGET_BYTES = 8192
"""Of a request that is looked at in the event loop."""


def looked_up(service: Service, request: PlainRequest) -> KeptAnswer | None:
    """The answer of `service` to a request; None for one that the library has to answer."""
    if request.method != "GET" or len(request.target) > MAX_TARGET_BYTES:
        return None
    path, _, query = request.target.decode("ascii").partition("?")
    found = service.answer_at_once(path, dict(parse_qsl(query, keep_blank_values=True)))
    if found is None or found.is_still is None:
        return None
    answer = Response(found.body, found.status, media_type=found.media_type)
    pack(answer, request.headers.get("accept-encoding", ""))
    return KeptAnswer(tuple(answer.raw_headers), bytes(answer.body), found.is_still)

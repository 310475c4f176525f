"""Answers packed for who can unpack them, where it is worth it: by whoever calls, in whatever thread."""

from __future__ import annotations

import zlib

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

GZIP_FROM_BYTES = 1500
GZIP_LEVEL = 1


def pack(response: Response, accepted: str) -> Response:
    """The response, packed where its body is long and who accepts such encodings is answered so."""
    body = bytes(response.body)
    if len(body) >= GZIP_FROM_BYTES:
        headers = MutableHeaders(raw=response.raw_headers)
        headers.add_vary_header("Accept-Encoding")
        if is_packed(accepted):
            response.body = zlib.compress(body, GZIP_LEVEL, 16 + zlib.MAX_WBITS)
            headers["Content-Encoding"] = "gzip"
            headers["Content-Length"] = str(len(response.body))
    return response


def is_packed(accepted: str) -> bool:
    """Whether who accepts such encodings is answered in packed form, where it is worth it."""
    return "gzip" in accepted

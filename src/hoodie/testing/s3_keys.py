"""Buckets that open to one access key only, before an S3 server that lets everybody in (moto).

1. `PUT /_keys/<bucket>` with `<access key> <secret>` as body closes a bucket to all others; `DELETE` opens it again.
   Other buckets stay open to everybody.
2. A request to a closed bucket is answered as S3 does: 403 `InvalidAccessKeyId` for another key or none, 403
   `SignatureDoesNotMatch` for a signature that the secret does not give (Signature Version 4, in headers).
3. Only requests in path style are understood: `/<bucket>/<key>`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, quote

Environ = dict[str, Any]
App = Callable[[Environ, Any], Iterable[bytes]]

CONTROL: Final = "/_keys/"
_SIGNED: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
    r"SignedHeaders=([^,]+), ?Signature=(\w+)"
)


class BucketKeys:
    """A WSGI application that asks `app` where the keys of a bucket fit."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._keys: dict[str, tuple[str, str]] = {}

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        path = str(environ["PATH_INFO"])
        if path.startswith(CONTROL):
            self._set(path.removeprefix(CONTROL), environ)
            start_response("200 OK", [("Content-Length", "0")])
            return [b""]
        wrong = self._wrong(path.lstrip("/").partition("/")[0], environ)
        if not wrong:
            return self._app(environ, start_response)
        body = f"<Error><Code>{wrong}</Code><Message>Access denied</Message></Error>".encode()
        size = str(len(body))
        start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", size)])
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]

    def _set(self, bucket: str, environ: Environ) -> None:
        if environ["REQUEST_METHOD"] == "DELETE":
            self._keys.pop(bucket, None)
            return
        key, _, secret = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode().partition(" ")
        self._keys[bucket] = key, secret

    def _wrong(self, bucket: str, environ: Environ) -> str:
        """The code of the error, empty where there is none."""
        if bucket not in self._keys:
            return ""
        key, secret = self._keys[bucket]
        said = _SIGNED.fullmatch(str(environ.get("HTTP_AUTHORIZATION", "")))
        if said is None or said[1] != key:
            return "InvalidAccessKeyId"
        given = signature(environ, secret, (said[2], said[3], said[4]), said[5].split(";"))
        return "" if hmac.compare_digest(given, said[6]) else "SignatureDoesNotMatch"


def signature(environ: Environ, secret: str, scope: tuple[str, str, str], headers: list[str]) -> str:
    """The signature of a request by a secret. `scope`: day, region and service; `headers`: names of those signed."""
    path, _, query = str(environ["RAW_URI"]).partition("?")
    # As signed, which need not be as sent: a client may send a space as "+".
    said = parse_qsl(query, keep_blank_values=True)
    pairs = sorted(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in said)
    lines = [f"{name}:{' '.join(_header(environ, name).split())}" for name in headers]
    payload = _header(environ, "x-amz-content-sha256")
    request = "\n".join((str(environ["REQUEST_METHOD"]), path, "&".join(pairs), *lines, "", ";".join(headers), payload))
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", _header(environ, "x-amz-date"), "/".join((*scope, "aws4_request")), digest))
    key = f"AWS4{secret}".encode()
    for part in (*scope, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _header(environ: Environ, name: str) -> str:
    found = name.upper().replace("-", "_")
    return str(environ.get(found if found in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{found}", ""))

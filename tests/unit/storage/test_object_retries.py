"""Failed calls of an object store are tried again: against a server that says 503 so many times, then answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hoodie.errors import Unavailable
from hoodie.storage.object import ObjectStorage


class BusyStore(ThreadingHTTPServer):
    """An S3 that is asked to slow down: `busy` answers of 503, then the file `content`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.busy = 0
        self.calls = 0


class _Answers(BaseHTTPRequestHandler):
    server: BusyStore

    def do_GET(self) -> None:
        self.server.calls += 1
        is_busy = self.server.calls <= self.server.busy
        body = b"<Error><Code>SlowDown</Code></Error>" if is_busy else b"content"
        self.send_response(503 if is_busy else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def store() -> Iterator[BusyStore]:
    server = BusyStore()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def storage(store: BusyStore, **options: str) -> ObjectStorage:
    endpoint = f"http://127.0.0.1:{store.server_address[1]}"
    return ObjectStorage("s3://bucket/base", {"endpoint": endpoint, "skip_signature": "true", **options})


def test_a_busy_store_is_asked_again(store: BusyStore) -> None:
    store.busy = 3
    assert storage(store).read("a") == b"content"
    assert store.calls == 4


@pytest.mark.parametrize(("options", "calls"), [({"max_retries": "0"}, 1), ({"max_retries": "2"}, 3)])
def test_it_is_asked_as_often_as_options_say(store: BusyStore, options: dict[str, str], calls: int) -> None:
    store.busy = 9
    with pytest.raises(Unavailable):
        storage(store, **options).read("a")
    assert store.calls == calls


def test_it_is_asked_no_longer_than_options_say(store: BusyStore) -> None:
    store.busy = 1_000
    with pytest.raises(Unavailable):
        storage(store, max_retries="1000", retry_timeout="1").read("a")
    assert store.calls < 50

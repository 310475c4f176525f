"""An S3 server for tests: moto in a process of its own, on a free port of 127.0.0.1.

1. The server ends with its parent: it lives as long as the pipe to its standard input is open.
2. A bucket can be closed to all but one access key (`s3_keys`).
3. To run the same tests against another server, set `HOODIE_TEST_S3` to `endpoint,key,secret` (a space-separated triple
   is fine, too); nothing is started then.

Import the fixtures `s3_server` and `s3_bucket` where they are used.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config

from hoodie.testing.s3_keys import CONTROL

# moto looks whether a key exists and stores it in two steps, so under load two conditional writes can both win. S3
# decides in one step; letting one PUT in at a time gives moto that promise.
_SERVER = """
import sys
import threading
from hoodie.testing.s3_keys import BucketKeys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

app = DomainDispatcherApplication(create_backend_app)
writing = threading.Lock()

def one_write_at_a_time(environ, start_response):
    if environ["REQUEST_METHOD"] != "PUT":
        return app(environ, start_response)
    with writing:
        return app(environ, start_response)

server = make_server("127.0.0.1", 0, BucketKeys(one_write_at_a_time), threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
server.shutdown()
"""


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where the server is and how to sign."""

    endpoint: str
    key: str = "testkey1"
    secret: str = "testsecret1"

    @property
    def options(self) -> dict[str, str]:
        """Options for `open_storage`."""
        return {
            "aws_access_key_id": self.key,
            "aws_secret_access_key": self.secret,
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
        }

    @property
    def client(self) -> Any:
        """A boto3 client, for what `Storage` cannot do: make buckets, look at uploads, write strange keys."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )

    def new_bucket(self) -> str:
        """Name of a fresh, empty bucket. Hudi takes a `hoodie-` away from the beginning of a bucket's name."""
        name = f"lake-{uuid.uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return name

    def close_bucket(self, bucket: str, key: str, secret: str) -> None:
        """Lets nobody into a bucket from now on but this access key with its secret."""
        self._control("PUT", bucket, f"{key} {secret}".encode())

    def open_bucket(self, bucket: str) -> None:
        """Lets everybody into a bucket again."""
        self._control("DELETE", bucket, None)

    def _control(self, method: str, bucket: str, data: bytes | None) -> None:
        request = urllib.request.Request(f"{self.endpoint}{CONTROL}{bucket}", data, method=method)
        urllib.request.urlopen(request, timeout=10).close()


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """A server that runs inside the block, or the one named by `HOODIE_TEST_S3`."""
    if given := os.environ.get("HOODIE_TEST_S3"):
        yield S3Server(*given.replace(",", " ").split())
        return
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise RuntimeError("moto did not start: is moto[server] installed?")
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Server) -> str:
    return s3_server.new_bucket()

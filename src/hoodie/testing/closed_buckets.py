"""Buckets each of which opens to its own access key alone, and what a caller says to open them.

For a server that tests started (`s3_server`): another one has keys of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from hoodie.storage import Storage, open_storage
from hoodie.testing.s3_server import S3Server

_KEYS: Final = (("access", "key"), ("secret", "secret"))


@dataclass
class ClosedBuckets:
    """Buckets of a server, each closed to all but its key."""

    server: S3Server
    buckets: list[str] = field(default_factory=list)

    def new_bucket(self) -> str:
        """The name of a fresh bucket with a key of its own."""
        name = self.server.new_bucket()
        self.server.close_bucket(name, f"key{name}", f"secret{name}")
        self.buckets.append(name)
        return name

    def credentials(self, wrong: tuple[str, str] | None = None) -> dict[str, str]:
        """Options that open all buckets, but for a `wrong` one whose key or secret (`access`, `secret`) is another, or
        `missing`.
        """
        said = {"fs.s3a.endpoint": self.server.endpoint, "fs.s3a.endpoint.region": "us-east-1"}
        for name in self.buckets:
            said |= {f"fs.s3a.bucket.{name}.{what}.key": f"{kind}{name}" for what, kind in _KEYS}
        if wrong is not None:
            bucket, how = wrong
            if how == "missing":
                said = {key: value for key, value in said.items() if f".{bucket}." not in key}
                said |= {"fs.s3a.access.key": "somebody", "fs.s3a.secret.key": "else"}
            else:
                said[f"fs.s3a.bucket.{bucket}.{how}.key"] = "nonsense"
        return said

    def storage(self, bucket: str, folder: str) -> Storage:
        """A folder of one of the buckets, opened by its key."""
        return open_storage(f"s3a://{bucket}/{folder}", self.credentials())

    def close(self) -> None:
        """Lets everybody into all of them again."""
        for name in self.buckets:
            self.server.open_bucket(name)


@contextmanager
def closed_buckets(server: S3Server) -> Iterator[ClosedBuckets]:
    """Buckets that are closed inside the block."""
    made = ClosedBuckets(server)
    try:
        yield made
    finally:
        made.close()

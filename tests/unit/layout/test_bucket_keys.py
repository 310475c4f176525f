"""Tables over buckets each of which opens to its own access key alone: the server refuses all others."""

from __future__ import annotations

import json
import uuid

import boto3
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError

import hoodie
from hoodie.errors import HudiError
from hoodie.layout import FederatedStorage
from hoodie.state.handle import open_handle
from hoodie.storage import open_storage
from hoodie.testing.closed_buckets import ClosedBuckets
from hoodie.testing.s3_server import S3Server, s3_server

pytestmark = pytest.mark.deep

__all__ = ["s3_server"]

RIDES = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
}
NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


class Closed(ClosedBuckets):
    """A table path and storage paths in buckets of their own, each closed to all but its key."""

    def options(self, *roots: str, wrong: tuple[str, str] | None = None, **more: str) -> dict[str, str]:
        """Those of a table with what opens all buckets, but for a `wrong` one; see `ClosedBuckets.credentials`."""
        said = self.credentials(wrong)
        if roots:
            said["hoodie.storage.path"] = ",".join(f"s3a://{root}" for root in roots)
        return RIDES | said | {f"hoodie.storage.{key}": value for key, value in more.items()}


@pytest.fixture
def closed(s3_server: S3Server):
    made = Closed(s3_server)
    yield made
    made.close()


def rows(v: int, partitions: int = 12, only: int | None = None) -> pa.Table:
    ids = [i for i in range(24) if only is None or i % partitions == only]
    return pa.table({"id": ids, "p": [f"p{i % partitions}" for i in ids], "v": [v] * len(ids)})


def values(table: hoodie.Table, **query: str) -> set[int]:
    return set(table.scan(**query).read_all()["v"].to_pylist())


def test_closed_bucket_lets_its_key_in_and_nobody_else(closed: Closed) -> None:
    bucket = closed.new_bucket()
    url = f"s3a://{bucket}/folder"
    storage = open_storage(url, {k: v for k, v in closed.options().items() if k.startswith("fs.")})
    storage.put("a b/é=%2F+ü", b"x" * 3000)
    assert storage.read("a b/é=%2F+ü") == b"x" * 3000
    assert [one.path for one in storage.list("")] == ["a b/é=%2F+ü"]
    storage.delete_dir("a b")
    for how in ("access", "secret", "missing"):
        options = {k: v for k, v in closed.options(wrong=(bucket, how)).items() if k.startswith("fs.")}
        with pytest.raises(HudiError, match=bucket):
            open_storage(url, options).put("mine", b"")
    client = boto3.client(
        "s3",
        endpoint_url=closed.server.endpoint,
        aws_access_key_id=f"key{bucket}",
        aws_secret_access_key=uuid.uuid4().hex,
        region_name="us-east-1",
    )
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        client.list_objects_v2(Bucket=bucket)


def test_table_lives_over_buckets_with_keys_of_their_own(closed: Closed) -> None:
    meta, one, two, three = (closed.new_bucket() for _ in range(4))
    options = closed.options(one, two, strategy="bits:2")
    uri = f"s3a://{meta}/tables/rides"
    table = hoodie.Table.create(uri, schema=rows(0).schema, options=options)
    for v in range(3):
        table.upsert(rows(v))
    assert values(table) == {2}
    table.services.compact()
    table.upsert(rows(3, only=1))
    table.services.compact()
    cleaned = table.services.clean(**NEWEST)
    assert cleaned is not None
    before = {(file.partition, file.file_id) for file in table.files()}
    done = table.services.relayout("bits:3", move=True, grace_hours=0, **closed.options(one, two, three))
    assert done is not None
    assert done.files == done.deleted > 0
    table = hoodie.Table.open(uri, options=closed.options(one, two, three))
    assert {(file.partition, file.file_id) for file in table.files()} == before
    stores = open_handle(uri, closed.options(one, two, three)).storage
    assert isinstance(stores, FederatedStorage)
    assert sum(any(".parquet" in file.path for file in root.list("")) for root in stores.roots) > 1
    assert values(table, filter="p = 'p1'") == {3}
    open_storage(uri, {k: v for k, v in options.items() if k.startswith("fs.")}).delete_dir(".hoodie/metadata")
    with pytest.raises(HudiError, match="doctor"):
        table.scan()
    table.indexes.rebuild()
    assert values(table) == {2, 3}
    assert not [one for one in table.doctor().concerns if one.severity != "note"]
    table.drop()
    assert all(not closed.server.client.list_objects_v2(**_signed(closed, name)).get("Contents") for name in (meta,))


@pytest.mark.parametrize("how", ["access", "secret", "missing"])
def test_root_whose_credentials_are_wrong_is_named_and_the_rest_works(closed: Closed, how: str) -> None:
    meta, one, two = (closed.new_bucket() for _ in range(3))
    versions = [
        {"v": 1, "since": "0", "strategy": "bits:2", "root": 0, "folder": "rides"},
        {"v": 2, "since": "0", "strategy": "bits:2", "root": 1, "folder": "rides", "partitions": "p1"},
    ]
    right = closed.options(one, two, **{"strategy.versions": json.dumps(versions)})
    uri = f"s3a://{meta}/tables/rides"
    hoodie.Table.create(uri, schema=rows(0).schema, options=right).upsert(rows(0, partitions=2))
    shut = hoodie.Table.open(uri, options=closed.options(one, two, wrong=(two, how)))
    for act in (
        lambda: values(shut),
        lambda: shut.upsert(rows(1, partitions=2)),
        shut.indexes.rebuild,
        lambda: shut.services.relayout("bits:3", **closed.options(one, two, wrong=(two, how))),
    ):
        with pytest.raises(HudiError, match=two):
            act()
    assert values(shut, filter="p = 'p0'") == {0}
    shut.upsert(rows(2, partitions=2, only=0))
    assert any(two in concern.subject + concern.message for concern in shut.doctor().concerns)
    again = hoodie.Table.open(uri, options=right)
    assert values(again, filter="p = 'p0'") == {2}
    assert values(again, filter="p = 'p1'") == {0}
    again.upsert(rows(5, partitions=2))
    assert values(again) == {5}
    assert again.validate() == []


def _signed(closed: Closed, bucket: str) -> dict[str, str]:
    closed.server.open_bucket(bucket)
    return {"Bucket": bucket}

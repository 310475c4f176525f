"""A table over two buckets of an S3 server, each with its own credentials, and one over a bucket and a local disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HudiError
from hoodie.layout import FederatedStorage
from hoodie.state.handle import open_handle
from hoodie.storage import open_storage
from hoodie.testing.s3_server import S3Server, s3_server  # noqa: F401

pytestmark = pytest.mark.deep

KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.index.column.stats.enable": "false",
}


def rows(v: int) -> pa.Table:
    return pa.table({"id": list(range(24)), "p": [f"p{i % 12}" for i in range(24)], "v": [v] * 24})


@pytest.mark.parametrize("second", ["bucket", "disk"])
def test_rows_are_written_served_and_repaired_over_both(s3_server: S3Server, tmp_path: Path, second: str) -> None:  # noqa: F811
    meta, one, two = (s3_server.new_bucket() for _ in range(3))
    other = f"s3a://{two}" if second == "bucket" else str(tmp_path / "data")
    options = KEYED | {"fs.s3a.endpoint": s3_server.endpoint, "fs.s3a.endpoint.region": "us-east-1"}
    options |= {f"fs.s3a.bucket.{bucket}.access.key": f"key-of-{bucket}" for bucket in (meta, one, two)}
    options |= {f"fs.s3a.bucket.{bucket}.secret.key": f"secret-of-{bucket}" for bucket in (meta, one, two)}
    options |= {"hoodie.storage.path": f"s3a://{one},{other}", "hoodie.storage.strategy": "bits:2"}
    uri = f"s3a://{meta}/tables/rides"
    table = hoodie.Table.create(uri, schema=rows(0).schema, options=options)
    for v in range(3):
        table.upsert(rows(v))
    table.services.compact()
    assert set(table.scan().read_all()["v"].to_pylist()) == {2}
    stores = open_handle(uri, options).storage
    assert isinstance(stores, FederatedStorage)
    assert all(sum(".parquet" in file.path for file in root.list("")) for root in stores.roots)
    assert "secret" not in repr(stores)
    open_storage(uri, {k: v for k, v in options.items() if k.startswith("fs.")}).delete_dir(".hoodie/metadata")
    with pytest.raises(HudiError, match="doctor"):
        table.scan()
    table.indexes.rebuild()
    assert table.scan().read_all().num_rows == 24
    for file in s3_server.client.list_objects_v2(Bucket=one)["Contents"]:
        s3_server.client.delete_object(Bucket=one, Key=file["Key"])
    s3_server.client.delete_bucket(Bucket=one)
    for act in (lambda: table.scan().read_all(), lambda: table.upsert(rows(9)), table.indexes.rebuild):
        with pytest.raises(HudiError, match=one):
            act()

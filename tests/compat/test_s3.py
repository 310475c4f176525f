"""A table that was written to an S3 server is, file by file, a table that the real Hudi reads and continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers import Model, Readers, ensure_same_rows, slim_rows, table_options, without_meta

from hoodie import Table
from hoodie.table import as_source, write
from hoodie.testing.s3_server import S3Server, s3_bucket, s3_server

__all__ = ["s3_bucket", "s3_server"]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_every_peer_reads_and_hudi_continues_a_copy_of_a_table_on_s3(
    version: int, s3_server: S3Server, s3_bucket: str, readers: Readers, tmp_path: Path
) -> None:
    uri, model = f"s3://{s3_bucket}/lake/table", Model(slim_rows(range(0)).schema)
    options = table_options(version, "id", "region") | s3_server.options
    for numbers, turn in ((range(20), 0), (range(15, 30), 1)):
        rows = slim_rows(numbers, turn)
        write(as_source(rows), uri, options, "append")
        model.upsert(rows)
    ours = Table.open(uri, options=s3_server.options).scan().read_all()
    ensure_same_rows(without_meta(ours), model.rows, called=("ours on S3", "model"))

    copy = _download(s3_server, s3_bucket, "lake/table/", tmp_path / "copy")
    ensure_same_rows(ours, readers.ensure_agree(copy, version), called=("ours on S3", "copy"))
    rows = slim_rows(range(28, 32), turn=2)
    readers.hudi_12.write(copy, "upsert", rows)
    model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(copy, version)), model.rows, called=("copy", "model"))


def _download(server: S3Server, bucket: str, prefix: str, to: Path) -> Path:
    pages = server.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for key in (item["Key"] for page in pages for item in page.get("Contents", [])):
        target = to / key.removeprefix(prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        server.client.download_file(bucket, key, str(target))
    return to

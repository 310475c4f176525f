"""`hoodie resize`: split large and merge small buckets of a consistent hashing index.

Buckets are large or small by hoodie.parquet.max.file.size, hoodie.bucket.index.split.threshold and merge.threshold; a
partition has hoodie.bucket.index.min.num.buckets to max.num.buckets of them. Both default to num.buckets: name it, and
hoodie.bucket.index.hash.field, as writers do.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from hoodie.cli.arguments import parse_options
from hoodie.cli.service import add_service, run_service

_INDEX = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


def define(parser: ArgumentParser) -> None:
    add_service(parser)


def run(said: Namespace) -> int:
    given = parse_options(said.option)
    index = {key: value for key, value in _INDEX.items() if key not in given}
    return run_service(
        said,
        "resize",
        lambda table: table.resize_buckets(**index),
        lambda table: table.preview("resize", **index),
        "every bucket is of a good size",
    )

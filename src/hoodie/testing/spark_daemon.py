"""Spark's daemon of Python workers, in a family whose changes are watched: see `killed_spark`."""

from __future__ import annotations

from pyspark.daemon import manager

from hoodie.testing.killed_spark import join_family

if __name__ == "__main__":
    join_family()
    manager()

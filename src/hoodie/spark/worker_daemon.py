"""The process that Spark's Python workers are forked from, with all that they need loaded.

1. A worker that loads hoodie, pyarrow and Spark's own modules for itself begins half a second later, and Spark ends
   workers that had nothing to do for a minute: every query after a pause would wait for that again.
2. Nothing is used here: no thread pool runs and no file is open that a fork would inherit.
3. `hoodie.session` names this module to a Spark whose workers run the driver's own Python
   (`spark.python.daemon.module`). Elsewhere hoodie may be missing where Spark starts its daemon: every Python function
   of the session would fail.
"""

from __future__ import annotations

import importlib
from typing import Final

from pyspark.daemon import manager

from hoodie.arrow_start import start_without_pandas

WORKERS_LOAD: Final = ("hoodie.spark.read_worker", "hoodie.write", "pyspark.worker")


def load() -> None:
    """Loads what workers load when they read and write tables."""
    start_without_pandas()
    for name in WORKERS_LOAD:
        importlib.import_module(name)


if __name__ == "__main__":
    load()
    manager()

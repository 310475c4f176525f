"""The process that Spark's Python workers are forked from, with all that they need loaded.

1. A worker that loads hoodie, pyarrow and Spark's own modules for itself begins half a second later, and Spark ends
   workers that had nothing to do for a minute: every query after a pause would wait for that again.
2. Nothing is used here: no pool of threads works and no file is open that a fork would inherit. numpy starts threads
   for linear algebra when it is loaded; Spark tells workers to use one (`OMP_NUM_THREADS`), and where somebody says
   otherwise nothing is loaded before the forks.
3. Standard output belongs to Spark: what a module prints while it is loaded goes to standard error.
4. `hoodie.session` names this module to a Spark whose workers run the driver's own Python
   (`spark.python.daemon.module`). Elsewhere hoodie may be missing where Spark starts its daemon: every Python function
   of the session would fail.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Final

from pyspark.daemon import manager

from hoodie.arrow_start import start_without_pandas

WORKERS_LOAD: Final = ("hoodie.spark.read_worker", "hoodie.write", "pyspark.worker")


def load(environment: Mapping[str, str] = os.environ) -> None:
    """Loads what workers load when they read and write tables. A module that cannot be loaded is told on standard
    error, and again by the worker that needs it.
    """
    if environment.get("OMP_NUM_THREADS") != "1" or environment.get("OPENBLAS_NUM_THREADS", "1") != "1":
        return
    with contextlib.redirect_stdout(sys.stderr):
        start_without_pandas()
        for name in WORKERS_LOAD:
            try:
                importlib.import_module(name)
            except ImportError:
                traceback.print_exc()
    random = sys.modules.get("numpy.random")
    if random is not None:  # its state was made in this process: all workers would draw the same numbers
        os.register_at_fork(after_in_child=random.seed)


if __name__ == "__main__":
    load()
    manager()

"""`hoodie.session`: a Spark session in which everything works after `pip install`.

1. What the user says (arguments, `spark-submit --conf`, `spark-defaults.conf`, environment variables) always wins;
   a default of ours fills only what nobody said.
2. Workers run this very Python: Spark would otherwise start whatever `python3` is first on `PATH`. On this machine they
   are forked from a process that has loaded hoodie already.
3. Workers of a local session import nothing from the folder they run in, unless this process does so itself: Spark
   starts them with `python -m`, which puts that folder first.
4. A local session listens on the loopback address only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hoodie.engine import BATCH_ROWS, usable_cores
from hoodie.errors import Unavailable
from hoodie.spark.enable import enable
from hoodie.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
MAX_DRIVER_MEMORY_GB = 8
WORKER_DAEMON = "hoodie.spark.worker_daemon"


def session(app: str = "hoodie", *, master: str | None = None, **conf: object) -> SparkSession:
    """Gets the running Spark session, or starts one, and calls `hoodie.enable` on it.

    `conf` holds Spark configuration by its own names: `hoodie.session("app", **{"spark.sql.shuffle.partitions": 8})`.
    `master` is short for `spark.master`; without either, Spark runs here, on all cores.

    Raises:
        Unavailable: PySpark is not installed, or there is no Java to run Spark on.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - not every session and worker has to load it
    except ImportError as error:
        raise Unavailable(
            f"PySpark cannot be loaded: {error}",
            remedy="Install it with pip install 'hoodie[spark]'; hoodie.Table works without",
        ) from error

    said = {name: _text(value) for name, value in conf.items()}
    if master is not None:
        said["spark.master"] = master
    running = SparkSession.getActiveSession()
    if running is None:
        _prepare_environment(said)
        said = {**_unsaid_defaults(said), **said}
    builder = SparkSession.builder if running is not None else SparkSession.builder.appName(app)
    for name, value in said.items():
        builder = builder.config(name, value)
    return enable(builder.getOrCreate())


def _prepare_environment(said: Mapping[str, str]) -> None:
    """Environment variables that Spark's launcher and workers look at, where they are not set."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _is_local(said.get("spark.master", "")):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    if "spark.remote" not in said and "SPARK_REMOTE" not in os.environ:
        os.environ["JAVA_HOME"] = str(java_home(os.environ))


def _unsaid_defaults(said: Mapping[str, str]) -> dict[str, str]:
    """Our defaults for everything that neither `said` nor Spark's own configuration names. Starts the JVM."""
    if "spark.remote" in said or "SPARK_REMOTE" in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - not every session and worker has to load it

    local = _is_local(said.get("spark.master", ""))
    launch = {"spark.driver.memory": f"{_driver_memory_gb()}g"} if local and not _is_memory_said() else {}
    launched = SparkConf(loadDefaults=False)
    for name, value in {**launch, **said}.items():
        launched.set(name, value)
    SparkContext._ensure_initialized(conf=launched)  # from here on SparkConf knows files and command line as well
    known = SparkConf()
    defaults = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if _is_local(said.get("spark.master") or known.get("spark.master") or ""):
        defaults["spark.sql.shuffle.partitions"] = str(4 * usable_cores())
        if not _imports_from_here():
            defaults["spark.executorEnv.PYTHONSAFEPATH"] = "1"
        names_python = "spark.pyspark.python" in said or known.contains("spark.pyspark.python")
        if os.environ["PYSPARK_PYTHON"] == sys.executable and not names_python and _is_found_by_new_processes():
            defaults["spark.python.daemon.module"] = WORKER_DAEMON
    return {name: value for name, value in defaults.items() if not known.contains(name)}


def _is_local(master: str) -> bool:
    """`local-cluster` counts: its executors are processes of this machine. No master at all means `local[*]`."""
    named = master or os.environ.get("MASTER", "")
    return not _is_submitted() and (named == "" or named.startswith("local"))


def _imports_from_here() -> bool:
    """Whether this Python looks for modules in the current folder."""
    here = os.path.realpath(os.curdir)
    return any(os.path.realpath(path or os.curdir) == here for path in sys.path)


def _is_found_by_new_processes() -> bool:
    """Whether this very package is what a new Python here imports, without what this one did to `sys.path`."""
    safely = () if _imports_from_here() else ("-P",)
    where = "import importlib.util as u; found = u.find_spec('hoodie'); print(found and found.origin)"
    run = subprocess.run([sys.executable, *safely, "-c", where], capture_output=True, text=True, check=False)
    return run.stdout.strip() == str(Path(__file__).parents[1] / "__init__.py")


def _is_submitted() -> bool:
    """Whether `spark-submit` or a notebook server started this Python, so that a JVM or its arguments are given."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or "PYSPARK_SUBMIT_ARGS" in os.environ


def _is_memory_said() -> bool:
    """Whether the driver's memory may be set where it cannot be asked for before the JVM runs."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and os.path.join(home, "conf"))
    return "SPARK_DRIVER_MEMORY" in os.environ or bool(
        folder and os.path.exists(os.path.join(folder, "spark-defaults.conf"))
    )


def _driver_memory_gb() -> int:
    """A quarter of this machine's memory: in local mode the driver's JVM does all the work of the JVM."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(MAX_DRIVER_MEMORY_GB, total // 4 >> 30))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

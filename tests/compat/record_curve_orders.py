"""Records the orders that the real Hudi puts rows in along Z-order and Hilbert curves, for tests that need no JVM.

    COMPAT_PYTHON tests/compat/record_curve_orders.py BUNDLE.jar

Writes `tests/unit/services/curve_orders.json`: columns of 64 rows by name, and for each case the method, the curve, the
columns and the places of the rows. A sample is drawn at random where columns have different numbers of values; the two
that are recorded are permutations.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as kinds

HERE = Path(__file__).parent
INTO = HERE.parent / "unit" / "services" / "curve_orders.json"
ROWS = 64
COLUMNS = {
    "n": kinds.IntegerType(),
    "i": kinds.IntegerType(),
    "l": kinds.LongType(),
    "d": kinds.DoubleType(),
    "f": kinds.FloatType(),
    "s": kinds.StringType(),
    "h": kinds.ShortType(),
    "b": kinds.ByteType(),
    "o": kinds.BooleanType(),
    "t": kinds.TimestampType(),
    "y": kinds.DateType(),
    "c": kinds.DecimalType(12, 2),
    "x": kinds.BinaryType(),
    "u": kinds.IntegerType(),
    "w": kinds.IntegerType(),
}
DIRECT = ["i d", "l s", "f t", "h y", "b l", "o c", "x i", "d l", "s i", "l d s", "i h", "y t c", "d i l s"]
STRATEGIES = "org.apache.hudi.config.HoodieClusteringConfig$LayoutOptimizationStrategy"
TEXTS = ["", "a", "aa", "b", "zebra", "zebras in a row", "zebras in b row", "ä"]


def rows_of(rng: random.Random) -> Iterator[tuple[Any, ...]]:
    """Rows with edges of each type, and a null here and there."""
    first, second = rng.sample(range(ROWS), ROWS), rng.sample(range(ROWS), ROWS)
    for n in range(ROWS):
        values = (
            rng.choice([0, 1, -1, 5, 2**31 - 1, -(2**31), rng.randint(-1000, 1000)]),
            rng.choice([0, -1, 2**62, -(2**62), rng.randint(-(10**12), 10**12)]),
            rng.choice([0.0, 1.5, -1.5, rng.uniform(-1e6, 1e6), 1e300, -1e-300]),
            struct.unpack("f", struct.pack("f", rng.choice([0.0, rng.uniform(-9, 9)])))[0],
            rng.choice([*TEXTS, f"x{rng.randint(0, 99)}"]),
            rng.randint(-32768, 32767),
            rng.randint(-128, 127),
            rng.random() < 0.5,
            datetime(1960, 1, 1) + timedelta(seconds=rng.randint(0, 3 * 10**9), microseconds=rng.randint(0, 999_999)),
            date(1960, 1, 1) + timedelta(days=rng.randint(0, 40_000)),
            Decimal(rng.randint(-(10**8), 10**8)).scaleb(-2),
            bytes(rng.randrange(256) for _ in range(rng.randint(0, 10))),
        )
        yield (n, *(None if rng.random() < 0.06 else value for value in values), first[n], second[n])


def orders(spark: Any, frame: DataFrame) -> Iterator[dict[str, Any]]:
    """The orders of Hudi's own helper, of one output file."""
    jvm = spark._jvm
    helper = jvm.org.apache.hudi.sort.SpaceCurveSortingHelper
    kind = jvm.java.lang.Class.forName(STRATEGIES)
    methods = {"DIRECT": (helper.orderDataFrameByMappingValues, DIRECT)}
    methods["SAMPLE"] = (helper.orderDataFrameBySamplingValues, ["u w"])
    for method, (ordered, cases) in methods.items():
        for curve in ("ZORDER", "HILBERT"):
            for names in cases:
                columns = jvm.java.util.ArrayList()
                for name in names.split():
                    columns.add(name)
                found = ordered(frame._jdf, jvm.java.lang.Enum.valueOf(kind, curve), columns, 1)
                places = [row[0] for row in DataFrame(found, spark).select("n").collect()]
                yield {"method": method, "curve": curve, "columns": names.split(), "order": places}


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return str(value) if isinstance(value, Decimal) else value


def main(bundle: str) -> None:
    utc = {"spark.sql.session.timeZone": "UTC", "spark.driver.extraJavaOptions": "-Duser.timezone=UTC"}
    settings = {**utc, "spark.driver.extraClassPath": bundle, "spark.sql.shuffle.partitions": "1"}
    builder = SparkSession.builder.master("local[1]")
    for key, value in {**settings, "spark.ui.enabled": "false"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    rows = list(rows_of(random.Random(7)))
    schema = kinds.StructType([kinds.StructField(name, kind) for name, kind in COLUMNS.items()])
    cases = list(orders(spark, spark.createDataFrame(rows, schema).coalesce(1).cache()))
    spark.stop()
    columns = {name: [plain(row[at]) for row in rows] for at, name in enumerate(COLUMNS) if name != "n"}
    shown = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in columns.items())
    ordered = ",\n".join(map(json.dumps, cases))
    INTO.write_text(f'{{\n"columns": {{\n{shown}\n}},\n"cases": [\n{ordered}\n]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

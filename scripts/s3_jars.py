"""The jars with which Hudi on Spark 3.5 reads and writes S3 and keeps its storage-based lock there, by Maven.

    python scripts/s3_jars.py FOLDER      lays them there, unless they are there already

The file system `s3a` is built on the SDK of AWS in version 1, the client of Hudi's lock on that in version 2.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jar_folder import lay_jars

HADOOP, SDK_1, SDK_2 = "3.3.4", "1.12.262", "2.29.52"
WANTED = {
    f"org.apache.hadoop:hadoop-aws:{HADOOP}": False,
    f"com.amazonaws:aws-java-sdk-s3:{SDK_1}": True,
    f"com.amazonaws:aws-java-sdk-dynamodb:{SDK_1}": True,
    f"com.amazonaws:aws-java-sdk-sts:{SDK_1}": True,
    f"software.amazon.awssdk:s3:{SDK_2}": True,
}

if __name__ == "__main__":
    lay_jars(Path(sys.argv[1]), "S3", f"{HADOOP}-{SDK_1}-{SDK_2}", WANTED)

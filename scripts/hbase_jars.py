"""The jars of a standalone HBase with its Thrift gateway, by Maven, for the tests that run beside one.

    python scripts/hbase_jars.py FOLDER      lays them there, unless they are there already

The gateway's own dependencies are left out: they would bring a Hadoop of another age beside the server's.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jar_folder import lay_jars

VERSION = "2.6.1"
WANTED = {
    f"org.apache.hbase:hbase-server:{VERSION}-hadoop3": True,
    f"org.apache.hbase:hbase-http:{VERSION}-hadoop3": True,
    f"org.apache.hbase:hbase-thrift:{VERSION}": False,
    "org.apache.thrift:libthrift:0.14.1": False,
    "org.slf4j:slf4j-nop:1.7.36": True,
}

if __name__ == "__main__":
    lay_jars(Path(sys.argv[1]), "HBase", VERSION, WANTED)

"""The timeline server of the real Hudi behind a pipe, same protocol as hudi_server.py (compat environment).

    python timeline_server.py VERSION

1. It is put together as an embedded server is: in memory, with the metadata tables of the tables it is asked for.
2. The JVM has no Spark session. The server ends with it.
"""

from __future__ import annotations

import sys
from typing import Any

from hfile_server import bare_jvm
from hudi_server import own_stdout, serve
from py4j.java_gateway import set_field


class ServerJobs:
    """Servers by port; each job starts, or asks about, one."""

    def __init__(self, jvm: Any) -> None:
        self.jvm = jvm
        self.running: list[Any] = []

    def start(self, metadata: bool = True, incremental: bool = False, markers: bool = False) -> dict[str, Any]:
        """A server on a free port. `metadata`: whether it reads metadata tables; `incremental`: how it syncs;
        `markers`: whether it writes them.
        """
        hudi = self.jvm.org.apache.hudi
        views = hudi.common.table.view
        hadoop = self.jvm.org.apache.hadoop.conf.Configuration()
        conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        engine = hudi.common.engine.HoodieLocalEngineContext(conf)
        reading = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(metadata).build()
        stored = views.FileSystemViewStorageConfig.newBuilder().withIncrementalTimelineSync(incremental).build()
        common = hudi.common.config.HoodieCommonConfig.newBuilder().build()
        manager = views.FileSystemViewManager.createViewManagerWithTableMetadata(engine, reading, stored, common)
        config = getattr(hudi.timeline.service, "TimelineService$Config")()
        for name, value in (("serverPort", 0), ("numThreads", 16), ("enableMarkerRequests", markers)):
            set_field(config, name, value)
        server = hudi.timeline.service.TimelineService(conf, config, manager)
        port = server.startService()
        self.running.append(server)
        return {"port": port}


if __name__ == "__main__":
    channel = own_stdout()
    serve(ServerJobs(bare_jvm(sys.argv[1])), channel)

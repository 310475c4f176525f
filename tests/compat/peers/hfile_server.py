"""HFile readers and writers of the real Hudi behind a pipe, same protocol as hudi_server.py (compat environment).

    python hfile_server.py VERSION

1. 1.x has its own implementation, 0.15 carries HBase's. The JVM has no Spark session: it starts in a second or two.
2. Entries come in and go out as parquet files with the binary columns `key` and `value`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_server import own_stdout, serve
from hudi_session import BUNDLE, find_jar
from peer_jars import ensure_java

HBASE = "org.apache.hudi.org.apache.hadoop.hbase"
Entries = Iterator[tuple[bytes, bytes]]


class NativeJobs:
    """Hudi 1.x."""

    def __init__(self, jvm: Any) -> None:
        self.jvm = jvm
        self.io = jvm.org.apache.hudi.io.hfile

    def scan(self, path: str, out: str) -> dict[str, Any]:
        """All entries, the count the reader gives, and the text of the bloom filter."""
        reader = self._opened(path)
        bloom = reader.getMetaBlock("bloomFilter")
        entries = list(self._entries(reader))
        store(entries, out)
        ascii = self.jvm.java.nio.charset.StandardCharsets.US_ASCII
        text = ascii.decode(bloom.get()).toString() if bloom.isPresent() else ""
        return {"count": reader.getNumKeyValueEntries(), "bloom": text}

    def seek(self, path: str, keys: list[str]) -> dict[str, Any]:
        """The keys, given in order, that seeking finds."""
        reader = self._opened(path)
        reader.seekTo()
        found = [key for key in keys if reader.seekTo(self.io.UTF8StringKey(key)) == 0]
        return {"found": found}

    def write(self, path: str, input: str, codec: str, block_bytes: int) -> dict[str, Any]:
        codecs = self.jvm.org.apache.hudi.io.compress.CompressionCodec
        context = self.io.HFileContext.builder().blockSize(block_bytes).compressionCodec(codecs.findCodecByName(codec))
        writer = self.io.HFileWriterImpl(context.build(), self.jvm.java.io.FileOutputStream(path))
        for key, value in load(input):
            writer.append(key.decode(), value)
        writer.close()
        return {}

    def _opened(self, path: str) -> Any:
        data = self.jvm.java.nio.file.Files.readAllBytes(self.jvm.java.io.File(path).toPath())
        stream = self.jvm.org.apache.hudi.io.ByteArraySeekableDataInputStream(
            self.jvm.org.apache.hudi.io.ByteBufferBackedInputStream(data)
        )
        reader = self.io.HFileReaderImpl(stream, len(data))
        reader.initializeMetadata()
        return reader

    def _entries(self, reader: Any) -> Entries:
        # The bytes of a whole block cross with each call, so they are asked for once a block: offsets then start again.
        block, last = b"", None
        more = reader.seekTo()
        while more:
            entry = reader.getKeyValue().get()
            start = entry.getValueOffset()
            if last is None or start <= last:
                block = bytes(entry.getBytes())
            last = start
            key = entry.getKeyContentOffset()
            yield block[key : key + entry.getKeyContentLength()], block[start : start + entry.getValueLength()]
            more = reader.next()


class HBaseJobs:
    """Hudi 0.15."""

    def __init__(self, jvm: Any) -> None:
        self.jvm = jvm
        self.hbase = jvm
        for name in HBASE.split("."):
            self.hbase = getattr(self.hbase, name)
        self.conf = jvm.org.apache.hadoop.conf.Configuration()
        self.files = jvm.org.apache.hadoop.fs.FileSystem.getLocal(self.conf).getRaw()

    def scan(self, path: str, out: str) -> dict[str, Any]:
        """All entries, the count the reader gives, and the text of the bloom filter."""
        reader = self._opened(path)
        entries = list(self._entries(reader))
        store(entries, out)
        bloom = reader.getMetaBlock("bloomFilter", False)
        text = b""
        if bloom is not None:
            content = bloom.getBufferWithoutHeader()
            text = bytes(content.toBytes(content.position(), content.remaining()))
        return {"count": reader.getEntries(), "bloom": text.decode()}

    def seek(self, path: str, keys: list[str]) -> dict[str, Any]:
        """The keys, given in order, that seeking finds."""
        scanner = self._opened(path).getScanner(False, True)
        wanted = {key: self.hbase.KeyValue(key.encode(), b"", b"", b"") for key in keys}
        return {"found": [key for key, cell in wanted.items() if scanner.seekTo(cell) == 0]}

    def write(
        self, path: str, input: str, codec: str, block_bytes: int, index_bytes: int = 128 * 1024
    ) -> dict[str, Any]:
        """`index_bytes`: what a block of the index may have before the index gets another level."""
        self.conf.setInt("hfile.index.block.max.size", index_bytes)
        algorithm = getattr(getattr(self.hbase.io.compress, "Compression$Algorithm"), codec)
        comparator = self.jvm.org.apache.hudi.io.storage.HoodieHBaseKVComparator()
        context = self.hbase.io.hfile.HFileContextBuilder().withBlockSize(block_bytes).withCompression(algorithm)
        factory = self.hbase.io.hfile.HFile.getWriterFactoryNoCache(self.conf)
        factory = factory.withPath(self.files, self.jvm.org.apache.hadoop.fs.Path(path))
        writer = factory.withFileContext(context.withCellComparator(comparator).build()).create()
        for key, value in load(input):
            writer.append(self.hbase.KeyValue(key, b"", b"", value))
        writer.close()
        return {}

    def _opened(self, path: str) -> Any:
        return self.hbase.io.hfile.HFile.createReader(self.files, self.jvm.org.apache.hadoop.fs.Path(path), self.conf)

    def _entries(self, reader: Any) -> Entries:
        scanner = reader.getScanner(False, True)
        more = scanner.seekTo()
        while more:
            cell = scanner.getCell()
            yield bytes(self.hbase.CellUtil.cloneRow(cell)), bytes(self.hbase.CellUtil.cloneValue(cell))
            more = scanner.next()


def load(path: str) -> Entries:
    rows = pq.read_table(path)
    yield from zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)


def store(entries: list[tuple[bytes, bytes]], path: str) -> None:
    keys, values = ([entry[part] for entry in entries] for part in (0, 1))
    pq.write_table(pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}), path)


def bare_jvm(version: str) -> Any:
    """A JVM with the bundle and Spark's jars on its class path, and no session in it."""
    ensure_java()
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 (Java must be found first)

    jar = find_jar(BUNDLE + version)
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as settings:
        settings.write(f"spark.driver.extraClassPath {jar}\nspark.driver.memory 512m\n")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {settings.name} pyspark-shell"
    return launch_gateway().jvm


if __name__ == "__main__":
    channel = own_stdout()
    jvm = bare_jvm(sys.argv[1])
    serve(HBaseJobs(jvm) if sys.argv[1].startswith("0.") else NativeJobs(jvm), channel)

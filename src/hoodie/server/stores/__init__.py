"""Where kept views have their files: in memory, on disk with a bounded share in memory, or in RocksDB."""

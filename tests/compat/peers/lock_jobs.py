"""Jobs on locks of Hudi's storage-based provider, by its own classes (runs in the compat environment)."""

from __future__ import annotations

from typing import Any

KEYS = "hoodie.write.lock.storage."


class LockJobs:
    """Takes, loses and gives back locks of tables, by their paths. All jobs run in one Java thread: it is the one that
    the provider interrupts when a lock is lost.
    """

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._providers: dict[str, Any] = {}

    def take_lock(self, path: str, wait_ms: int, validity_s: int = 300, renew_s: int = 30) -> dict[str, Any]:
        """Whether the lock of a table is held within the wait; as whose, and the process that renews it."""
        jvm = self.spark._jvm
        hudi = jvm.org.apache.hudi
        settings = hudi.common.config.TypedProperties()
        settings.put("hoodie.base.path", path)
        settings.put(f"{KEYS}validity.timeout.secs", validity_s)
        settings.put(f"{KEYS}renew.interval.secs", renew_s)
        locking = hudi.common.config.LockConfiguration(settings)
        conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.spark.sparkContext._jsc.hadoopConfiguration())
        provider = hudi.client.transaction.lock.StorageBasedLockProvider(locking, conf)
        if not provider.tryLock(wait_ms, jvm.java.util.concurrent.TimeUnit.MILLISECONDS):
            provider.close()
            return {"taken": False}
        self._providers[path] = provider
        process = jvm.java.lang.ProcessHandle.current().pid()
        return {"taken": True, "owner": provider.getLock().getOwner(), "process": process}

    def give_back_lock(self, path: str) -> dict[str, Any]:
        """Gives the lock back; whether it had been lost, as the provider told its thread."""
        was_lost = bool(self.spark._jvm.java.lang.Thread.interrupted())
        self._providers.pop(path).close()
        return {"was_lost": was_lost}

    def parse_lock(self, content: str) -> dict[str, Any]:
        """What a lock file says, as Hudi reads it, and how Hudi writes the same."""
        jvm = self.spark._jvm
        models = jvm.org.apache.hudi.client.transaction.lock.models
        found = models.StorageLockFile.createFromStream(jvm.java.io.ByteArrayInputStream(content.encode()), "version")
        data = models.StorageLockData(found.isExpired(), found.getValidUntilMs(), found.getOwner())
        return {
            "expired": found.isExpired(),
            "valid_until_ms": found.getValidUntilMs(),
            "owner": found.getOwner(),
            "written": bytes(models.StorageLockFile.toByteArray(data)).decode(),
        }

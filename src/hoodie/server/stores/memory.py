"""Files of kept views in memory, packed: Hudi's `MEMORY`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hoodie.server.stores.packed import PackedFiles
from hoodie.server.stores.store import Edit


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A `ViewStore` in memory. `packed`: the bytes of each partition."""

    packed: Mapping[str, bytes] = field(default_factory=dict)
    outlives = False
    is_in_memory = True

    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self.packed))

    def has(self, partition: str) -> bool:
        return partition in self.packed

    def files(self, partition: str) -> PackedFiles | None:
        data = self.packed.get(partition)
        return None if data is None else PackedFiles(data)

    def of_group(self, partition: str, file_id: str) -> Iterable[tuple[str, int]]:
        found = self.files(partition)
        return () if found is None else found.of_group(file_id)

    def parts(self) -> Mapping[str, bytes]:
        return {}

    def changed(self, edit: Edit) -> MemoryStore:
        now = {} if edit.is_emptied else dict(self.packed)
        for partition in edit.dropped:
            now.pop(partition, None)
        for partition, change in edit.changes.items():
            now[partition] = PackedFiles(now[partition]).changed(change).data
        now.update((partition, files.data) for partition, files in edit.loaded.items())
        return MemoryStore(now)


class MemoryStores:
    """The `Stores` in memory."""

    def open(self, place: str) -> MemoryStore:
        return MemoryStore()

    def distrust(self) -> None:
        """Has no effect: what is kept ends with the service."""

    def close(self) -> None:
        """There is nothing to give back."""

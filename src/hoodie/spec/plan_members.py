"""What plans of compactions and of clusterings have in common: file groups by name, partitions left for later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.typed_values import texts_of

_MISSING: Final = "missingSchedulePartitions"


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """A file slice that is read, by its file group."""

    partition: str
    file_id: str

    @property
    def group_id(self) -> tuple[str, str]:
        """(partition path, file id)."""
        return self.partition, self.file_id


def missing_values(missing: Sequence[str] | None, generation: AvroGeneration) -> dict[str, Any]:
    """The member for partitions that a strategy left for a later plan; none before 1.x."""
    return {_MISSING: None if missing is None else list(missing)} if generation == "1.x" else {}


def parse_missing(record: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """Those partitions in a decoded plan of the file `path`; None where it does not say. Raises as `texts_of`."""
    return None if record.get(_MISSING) is None else texts_of(record, _MISSING, path)

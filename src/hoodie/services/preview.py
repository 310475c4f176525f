"""What a service would do, as people want to see it before it does it: files, bytes, reasons, an estimate.

1. A preview is made from the very plan the service would run; making it writes nothing.
2. A step is one decision with its reason: a file group rewritten, a slice's files deleted, instants archived.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.notebook import Displayed


@dataclass(frozen=True, slots=True)
class PreviewStep:
    """One thing a service would do. `action` is a verb: delete, rewrite, merge, move, create, archive.

    `paths` are relative to the table; `size_bytes` is the size of those files.
    """

    action: str
    partition: str
    file_id: str | None
    paths: tuple[str, ...]
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class ServicePreview(Displayed):
    """What `service` would do now. `notes` say what matters beside the steps: why there are none, what blocks more.

    `estimated_seconds` is None where nothing earlier tells how long it takes.
    """

    service: str
    steps: tuple[PreviewStep, ...] = ()
    notes: tuple[str, ...] = ()
    estimated_seconds: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the service would do nothing."""
        return not self.steps

    @property
    def files(self) -> int:
        """Number of files all steps are about."""
        return sum(len(step.paths) for step in self.steps)

    @property
    def size_bytes(self) -> int:
        """Bytes of those files."""
        return sum(step.size_bytes for step in self.steps)

"""Memory that a test may take."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FORGETS_PEAK: Final = Path("/proc/self/clear_refs")


@contextlib.contextmanager
def at_most_held(size_bytes: int) -> Iterator[None]:
    """This process holds less than so many bytes more at any moment of the block. Memory that is reserved and never
    touched is not held.
    """
    # Other tests ran in this process before. Linux can forget the peak they left (5 is "peak"); where it may not be
    # asked, the growth of the peak has to do.
    with contextlib.suppress(OSError):
        _FORGETS_PEAK.write_text("5")
    before = _most_bytes_held()
    try:
        yield
    finally:
        taken = _most_bytes_held() - before
        assert taken < size_bytes, f"{taken >> 20} MiB were taken, more than {size_bytes >> 20}"


def _most_bytes_held() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

"""What a clean left: content of a completed clean, as far as readers need it.

1. Everything before the earliest retained commit may be gone; from it on, every state of the table can be read.

It does not know storage, nor (yet) how a clean is planned.
"""

from __future__ import annotations

from hoodie.spec.avro_container import parse_container
from hoodie.spec.instant import InstantTime
from hoodie.spec.typed_values import typed


def parse_earliest_retained(data: bytes, path: str) -> InstantTime | None:
    """The earliest commit whose state was kept; None when the clean does not say.

    Raises:
        Corrupt: damaged.
    """
    return typed(parse_container(data, path)[1], "earliestCommitToRetain", str, path) or None

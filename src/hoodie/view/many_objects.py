"""Making very many objects that all stay.

Python looks for cycles again each time the number of objects has grown by some share, and so looks at all files of a
large table many times over. Half the time of listing 100 000 files was that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_later() -> Iterator[None]:
    """No search for garbage inside the block (in any thread); what it leaves behind is found afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

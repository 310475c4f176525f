"""Keeps pandas out of a process that has no use for it.

pyarrow imports pandas, where it is installed, the first time a list becomes an array (`import pyarrow.dataset` is
enough): that takes longer than most commands do. It asks once; when pandas cannot be imported at that moment, it works
without, and code that needs pandas itself may still import it later.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _NoPandas(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def keep_pandas_out() -> None:
    """Lets pyarrow look for pandas now and not find it. For a process of our own only: it lasts until it ends."""
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)

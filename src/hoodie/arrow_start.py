"""Starts pyarrow without pandas, in processes that are ours: Spark workers and the command line.

1. pyarrow imports pandas, where it is installed, the first time it makes a scalar or an array: 0.2 s and 58 MB in every
   process (measured), and no row here ever becomes a pandas object.
2. It looks for pandas once. When pandas cannot be found at that moment, it works without.
3. Whoever imports pandas later in the same process gets it, and pyarrow is told: a Spark worker may run somebody's
   pandas functions after ours.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

_PANDAS = "pandas"


def start_without_pandas() -> None:
    """Lets pyarrow look for pandas now and not find it. Nothing happens where pandas is loaded or was hidden before."""
    if _PANDAS in sys.modules or any(isinstance(finder, _PandasLater) for finder in sys.meta_path):
        return
    finder = _PandasLater()
    sys.meta_path.insert(0, finder)
    pa.scalar(0)
    finder.hides = False


class _PandasLater(MetaPathFinder):
    """Says that there is no pandas while it `hides` it; then stays until pandas is really loaded: others only ask where
    it is (polars does).
    """

    def __init__(self) -> None:
        self.hides = True
        self._asks = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _PANDAS or self._asks:
            return None
        if self.hides:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        self._asks = True
        try:
            found = importlib.util.find_spec(fullname)
        finally:
            self._asks = False
        if found is not None and found.loader is not None:
            found.loader = _TellingLoader(found.loader, self)
        return found


class _TellingLoader(Loader):
    """Loads pandas as `inner` does, then makes pyarrow look again. `finder` has done its work then."""

    def __init__(self, inner: Loader, finder: MetaPathFinder) -> None:
        self._inner = inner
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        spec = module.__spec__
        if spec is not None:
            spec.loader = module.__loader__ = self._inner
        self._inner.exec_module(module)
        pa.table({}).to_pandas()  # looks for pandas again, as every conversion to it does

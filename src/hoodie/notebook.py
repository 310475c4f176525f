"""What a notebook asks a value for. How the value looks is known to `hoodie.present`, which is loaded when one asks."""

from __future__ import annotations

import importlib


class Displayed:
    """A value that Jupyter and its like show as a table: as `hoodie.present.as_html` shows it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # By name: presentation is above all that it presents. It costs nothing where nobody looks.
        return str(importlib.import_module("hoodie.present").as_html(self))

"""What a package says it exports is there."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import hoodie

PACKAGES = sorted(found.name for found in pkgutil.walk_packages(hoodie.__path__, "hoodie.") if found.ispkg)


@pytest.mark.parametrize("name", ["hoodie", *PACKAGES])
def test_every_exported_name_is_there(name: str) -> None:
    package = importlib.import_module(name)
    assert [one for one in getattr(package, "__all__", ()) if not hasattr(package, one)] == []

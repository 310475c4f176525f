"""A write index of a caller's own: a Python class that the option `hoodie.index.class` names.

1. The name is `package.module:Class`, or with a dot for the colon. The module is imported as Python imports any, and
   the class is made with the options of the call and the table's config.
2. This runs code. The name is taken from the options of a call (or of the machine), never from what a table says of
   itself: who can write to a table cannot choose what others import.
3. Its answers are checked (`CheckedIndex`): nobody else would find out that rows are lost.
"""

from __future__ import annotations

import importlib
from typing import Final

from hoodie.config import Config
from hoodie.errors import HudiError, Invalid
from hoodie.index.checked_index import CheckedIndex
from hoodie.index.write_index import IndexTraits, WriteIndex
from hoodie.spec import TableConfig

INDEX_CLASS: Final = "hoodie.index.class"


def own_index(path: str, config: Config, table: TableConfig) -> CheckedIndex:
    """The index that the class at `path` makes, with its answers checked.

    Raises:
        Invalid: there is no such class, it cannot be made, or what it makes is no index.
    """
    module_name, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        if not module_name or not name.isidentifier():
            raise ImportError("the name has no module and class")
        found = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # whatever a module raises while it is imported
        raise Invalid(
            f"{INDEX_CLASS}={path} cannot be imported: {type(error).__name__}: {error}",
            remedy="Name a Python class as package.module:Class, and see that Python finds the module (PYTHONPATH)",
            key=INDEX_CLASS,
        ) from error
    try:
        index = found(config, table)
    except HudiError:
        raise
    except Exception as error:  # whatever the class raises
        raise Invalid(
            f"{INDEX_CLASS}={path} cannot be made: {type(error).__name__}: {error}",
            remedy="It is called with the options of the write (Config) and the table's config (TableConfig)",
            key=INDEX_CLASS,
        ) from error
    if not (isinstance(index, WriteIndex) and isinstance(index.traits, IndexTraits)):
        raise Invalid(
            f"{INDEX_CLASS}={path} makes no write index but a {type(index).__name__}",
            remedy="Give it what hoodie.index.WriteIndex has: traits, spool_order, begin; PlainIndex helps",
            key=INDEX_CLASS,
        )
    return CheckedIndex(index)

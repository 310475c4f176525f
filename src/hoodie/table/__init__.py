"""The façade: a table with its verbs on data, its services, indexes, savepoints and history; and a write by options."""

from hoodie.table.save import as_source, write
from hoodie.table.table import Table

__all__ = ["Table", "as_source", "write"]

"""Conditions on rows: parsed from SQL or given as Arrow expressions, decided on rows."""

from hoodie.filters.row_filter import RowFilter, filter_of

__all__ = ["RowFilter", "filter_of"]

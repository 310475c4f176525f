"""Compares what the indexes of a metadata table say with the rows of the table."""

from hoodie.metadata_writer.contents.compare import index_troubles

__all__ = ["index_troubles"]

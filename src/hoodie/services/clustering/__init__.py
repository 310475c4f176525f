"""Clustering: file groups are replaced by fewer, larger ones, whose rows lie in an order that queries filter by."""

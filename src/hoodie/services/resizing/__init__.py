"""Buckets of a consistent hashing index split and merge."""

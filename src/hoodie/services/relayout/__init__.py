"""Changing where the files of a table lie."""

"""The `hoodie` command: arguments in, tables of text or JSON out. It decides nothing; `hoodie.Table` does the work."""

from hoodie.cli.app import main

__all__ = ["main"]

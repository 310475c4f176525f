"""Writes are rolled back: rollback, savepoints, restore, orphans."""

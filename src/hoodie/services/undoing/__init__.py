"""Writes are taken back: rollback, savepoints, restore, heartbeats of the living."""

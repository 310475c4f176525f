"""Numbers with their units, in the words people use."""

from __future__ import annotations


def size_text(size_bytes: int) -> str:
    """Bytes in the unit people would use."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def count_text(number: int, noun: str) -> str:
    """How many there are of a thing."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

"""What is said when the filter of a query cannot be computed over rows."""

from __future__ import annotations

from hoodie.errors import Invalid

_OVERFLOWS = ("overflow", "fit in precision", "not in range", "out of bounds", "was truncated converting")


def is_overflow(error: Exception) -> bool:
    """Whether Arrow says that a number does not fit its type."""
    return any(words in str(error) for words in _OVERFLOWS)


def filter_failed(error: Exception, of: str) -> Invalid:
    """The error to raise from what Arrow says about rows of `of` (a file, or another name for them)."""
    if is_overflow(error):
        return Invalid(
            f"The filter computes a number over {of} that its type cannot hold",
            remedy="Cast a column to DOUBLE or DECIMAL before computing with it",
        )
    return Invalid(
        f"The filter compares or computes what does not go together in {of}",
        remedy="Compare columns with values of their own type, or cast one side",
    )

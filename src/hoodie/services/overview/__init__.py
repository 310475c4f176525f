"""What people ask of a table: what happened to it, how it is now, and what waits, as values that a page can show."""

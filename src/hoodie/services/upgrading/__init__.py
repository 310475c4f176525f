"""A table goes to another version, upwards or downwards."""

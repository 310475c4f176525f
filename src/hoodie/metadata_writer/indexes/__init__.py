"""The kinds of metadata indexes, one module each, and the registry that callers walk."""

"""Contract classes, shims and servers for tests: needs the dev dependencies, and no other package imports it."""

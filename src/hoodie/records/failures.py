"""What pyarrow's errors mean when a base file is read or written: the one place that translates them.

Operating system errors are left to `storage`, whose files raise them; only native pyarrow files let an `OSError`
through.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from hoodie.errors import Corrupt, HudiError, Invalid, Missing, Unavailable


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Errors of the block concern the base file `path` being read.

    Raises:
        Corrupt: the bytes are not those of a base file.
        Missing: the file is gone.
        Unavailable: the storage failed.
        Invalid: as the block raised it, with the path.
    """
    try:
        yield
    except Invalid as error:
        if "path" in error.facts:
            raise
        raise Invalid(f"{path}: {error.cause}", remedy=error.remedy, **error.facts, path=path) from error
    except HudiError:
        raise
    except FileNotFoundError as error:
        raise Missing(f"{path} does not exist", path=path) from error
    except OSError as error:
        if error.errno is None:
            # Arrow reports damaged bytes as plain I/O errors ("Couldn't deserialize thrift", "Corrupt snappy ...").
            raise _corrupt(path, error) from error
        raise _unavailable("read", path, error) from error
    except pa.ArrowMemoryError as error:
        raise Corrupt(
            f"Base file {path} cannot be read: its pages ask for more memory than this process gets: {error}",
            remedy="A file much smaller than that is damaged: restore it from a copy, or roll back its commit. "
            "Otherwise give the process more memory",
            path=path,
        ) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _corrupt(path, error) from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Errors of the block concern the base file `path` being written.

    Raises:
        Invalid: the rows cannot be stored.
        Unavailable: the storage failed.
    """
    try:
        yield
    except HudiError:
        raise
    except OSError as error:
        raise _unavailable("write", path, error) from error
    except pa.ArrowException as error:
        raise Invalid(
            f"Rows cannot be written to {path}: {error}", remedy="Correct the rows or the table's schema", path=path
        ) from error


def _corrupt(path: str, error: BaseException) -> Corrupt:
    return Corrupt(
        f"Base file {path} cannot be read: {error}",
        remedy="It is damaged or was cut short: restore it from a copy, or roll back the commit that wrote it",
        path=path,
    )


def _unavailable(action: str, path: str, error: OSError) -> Unavailable:
    code = errno.errorcode.get(error.errno or 0, "unknown")
    remedies = {"ENOSPC": "Free space there, then retry", "EACCES": "Give this process access to it, then retry"}
    return Unavailable(
        f"Cannot {action} {path}: {error}",
        remedy=remedies.get(code, "Remove the cause, then retry"),
        path=path,
        errno=code,
    )

"""Python classes of a caller's own, named in options as `package.module:Class`.

Importing is running code. Callers of this take the name from the options of a call (or of the machine), never from what
a table or a plan says: who can write to a table cannot choose what others import.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from hoodie.errors import HudiError, Invalid

T = TypeVar("T")


def own_class(key: str, path: str) -> Callable[..., Any]:
    """The class that option `key` names by `path`: `package.module:Class`, or with a dot for the colon.

    Raises:
        Invalid: there is no such class.
    """
    module_name, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        if not module_name or not name.isidentifier():
            raise ImportError("the name has no module and class")
        found: Callable[..., Any] = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # whatever a module raises while it is imported
        raise Invalid(
            f"{key}={path} cannot be imported: {type(error).__name__}: {error}",
            remedy="Name a Python class as package.module:Class, and see that Python finds the module (PYTHONPATH)",
            key=key,
        ) from error
    return found


def made_by_own_class(key: str, path: str, *arguments: object, given: str) -> Any:
    """What the class that `key` names makes of the arguments, which are `given` in words.

    Raises:
        Invalid: there is no such class, or it cannot be made. HudiError: what it raises of these.
    """
    found = own_class(key, path)

    def cannot_be_made(said: str) -> Invalid:
        return Invalid(f"{key}={path} cannot be made: {said}", remedy=f"It is called with {given}", key=key)

    return answer_of_own_class(lambda: found(*arguments), cannot_be_made)


def answer_of_own_class(call: Callable[[], T], wrong: Callable[[str], Invalid]) -> T:
    """What a call of a class of the caller's own gives. `wrong` makes the error of what it raised instead, in words.

    Raises:
        Invalid: whatever it raises, by `wrong`. HudiError: what it raises of these.
    """
    try:
        return call()
    except HudiError:
        raise
    except Exception as error:  # whatever the class raises
        raise wrong(f"{type(error).__name__}: {error}") from error

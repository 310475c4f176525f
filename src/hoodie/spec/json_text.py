"""JSON text in a table's files as values, with one kind of error for all that can be wrong with it.

1. Text is UTF-8. Escapes may spell halves of characters (lone surrogates); no file name, key or column can hold those,
   so they are refused here, before they get to where text becomes bytes again.
2. Nesting is limited by the interpreter: about a thousand levels, then it is an error like the others.

It does not know what the values mean.
"""

from __future__ import annotations

import json
import re
from typing import Any

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_json(data: bytes) -> Any:
    """The value that JSON text stands for.

    Raises:
        ValueError: it is damaged, nested too deep, or has text that is none.
    """
    try:
        values = json.loads(data.decode("utf-8-sig"))
        if _HALF_CHARACTER.search(data):
            json.dumps(values, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return values

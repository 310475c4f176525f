"""Which option values must never be printed, and how they are printed instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MASK = "***"

# Hudi's own list of name parts (the default of hoodie.sensitive.config.keys), then what storage credentials are called.
_SENSITIVE_PARTS = ("ssl", "tls", "sasl", "auth", "credentials")
_SENSITIVE_KEY = "hoodie.sensitive.config.keys"
_SECRET_NAME = re.compile(
    r"secret|passw|token|credential|private[._-]?key|access[._-]?key|account[._-]?key|api[._-]?key|encryption[._-]?key"
    r"|service[._-]?account|http\.custom\.headers|(^|[._-])sas([._-]|$)|(^|[._-])pwd([._-]|$)",
    re.IGNORECASE,
)
_SECRET_IN_URL = re.compile(r"(?<=://)[^/\s@:]*:[^/\s@]+(?=@)|(?<=password=)[^;&\s]+", re.IGNORECASE)


def masked(options: Mapping[str, object]) -> dict[str, str]:
    """`options` as they may be printed: values of secrets replaced, passwords inside URLs too.

    Secret is what looks like a credential by its name, and every name that contains a part listed in
    `hoodie.sensitive.config.keys` (Hudi's default parts always count).
    """
    more = str(options.get(_SENSITIVE_KEY) or "").lower().split(",")
    parts = (*_SENSITIVE_PARTS, *(part.strip() for part in more if part.strip()))
    return {name: _shown(name, str(value), parts) for name, value in options.items()}


def shown(name: str, value: str) -> str:
    """`value` of option `name` as it may be printed."""
    return _shown(name, value, _SENSITIVE_PARTS)


def _shown(name: str, value: str, parts: tuple[str, ...]) -> str:
    lowered = name.lower()
    if lowered == _SENSITIVE_KEY or value.lower() in ("", "true", "false"):
        return value
    if _SECRET_NAME.search(name) or any(part in lowered for part in parts):
        return _MASK
    return _SECRET_IN_URL.sub(_MASK, value)

"""What the option keys mean: a registry of Hudi's keys and our own, and the checked options of one call.

`resolve(options)` gives a `Config`; `lookup(key)` explains a key; `masked(options)` makes options printable.
"""

from hoodie.config.config import Config, Purpose, resolve
from hoodie.config.reference import differences_markdown, reference_markdown
from hoodie.config.registry import (
    ConfigKey,
    Kind,
    ValueType,
    all_keys,
    differences,
    find,
    lookup,
    meant,
    nearest,
    spellings,
)
from hoodie.config.secret import masked, shown
from hoodie.config.values import accepted, option_text, takes

__all__ = [
    "Config",
    "ConfigKey",
    "Kind",
    "Purpose",
    "ValueType",
    "accepted",
    "all_keys",
    "differences",
    "differences_markdown",
    "find",
    "lookup",
    "masked",
    "meant",
    "nearest",
    "option_text",
    "reference_markdown",
    "resolve",
    "shown",
    "spellings",
    "takes",
]

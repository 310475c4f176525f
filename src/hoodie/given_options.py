"""Options as a caller gave them, over those of the machine, checked.

What goes before, from the first: options of the call; options the table was opened with; in Spark, those of the session
(`hoodie.*`, then `spark.hoodie.*`); `hudi-defaults.conf` in the folder `HUDI_CONF_DIR`, then in `/etc/hudi/conf`; the
defaults of the reference. Two spellings of a setting count as one. The same rules hold wherever an option comes from.

This is the one place below the command line that looks at the environment of the process, as Hudi does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from hoodie.config import Config, Purpose, resolve
from hoodie.config.defaults import load_defaults, over
from hoodie.errors import HudiError, Invalid, Unsupported


def resolve_given(*layers: Mapping[str, object], purpose: Purpose = "write") -> Config:
    """The checked form of options given in `layers`, the first of which goes before the others.

    Raises:
        Invalid, Unsupported: see `resolve`; names the file when it is to blame.
    """
    given: dict[str, object] = {}
    for layer in layers:
        given = over(given, layer)
    defaults = load_defaults(os.environ)
    if not defaults.options:
        return resolve(given, purpose=purpose)
    try:
        return resolve(over(given, defaults.options), purpose=purpose)
    except (Invalid, Unsupported) as error:
        resolve(given, purpose=purpose)
        raise _blaming(defaults.files, error) from error


def _blaming(files: tuple[str, ...], error: HudiError) -> HudiError:
    """`error`, which options of the call alone do not raise, with the files."""
    return type(error)(f"{error.cause} (as {' and '.join(files)} would have it)", remedy=error.remedy, **error.facts)

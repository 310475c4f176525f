"""Spark on top: DataFrames in and out, tasks on Spark's workers. Nothing about tables is decided here.

Names that bring the table façade along are loaded when first used: a worker imports one small module of this package
and must not pay for the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hoodie.spark.enable import enable
from hoodie.spark.session import session

if TYPE_CHECKING:
    from hoodie.spark.engine import SparkEngine
    from hoodie.spark.frame_source import FrameSource
    from hoodie.spark.reader import plan_frame, read_frame

_HOMES = {"FrameSource": "frame_source", "SparkEngine": "engine", "plan_frame": "reader", "read_frame": "reader"}

__all__ = ["FrameSource", "SparkEngine", "enable", "plan_frame", "read_frame", "session"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hoodie.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hoodie.spark.{home}"), name)

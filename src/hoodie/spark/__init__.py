"""Spark on top: DataFrames in and out, tasks on Spark's workers. Nothing about tables is decided here."""

from hoodie.spark.enable import enable
from hoodie.spark.engine import SparkEngine
from hoodie.spark.frame_source import FrameSource
from hoodie.spark.native_scan import ScanFile, native_scan
from hoodie.spark.session import session

__all__ = ["FrameSource", "ScanFile", "SparkEngine", "enable", "native_scan", "session"]

"""Sorted key-value files (HFile version 3): the metadata table's base files and the content of some log blocks."""

from hoodie.hfile.codec import Codec
from hoodie.hfile.encode import BloomMeta, HFileOptions, encode_hfile
from hoodie.hfile.entries import KeyValues
from hoodie.hfile.reader import HFile, open_hfile

__all__ = ["BloomMeta", "Codec", "HFile", "HFileOptions", "KeyValues", "encode_hfile", "open_hfile"]

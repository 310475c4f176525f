"""Blocks of log files and what they hold: rows, deletes, record positions."""

from hoodie.logs.contents import encode_avro_content, encode_hfile_content, encode_parquet_content
from hoodie.logs.deletes import Deletes, encode_deletes, parse_deletes, read_deletes
from hoodie.logs.merge_order import blocks_to_merge
from hoodie.logs.positions import encode_positions, parse_positions, read_positions
from hoodie.logs.read import RangeStorage, cut_off, ensure_sound, read_blocks, read_content
from hoodie.logs.rows import open_block_hfile, read_block_rows, rows_of_entries, verify_parquet_block
from hoodie.spec import BlockKind, HeaderKey, LogBlock, encode_block

__all__ = [
    "BlockKind",
    "Deletes",
    "HeaderKey",
    "LogBlock",
    "RangeStorage",
    "blocks_to_merge",
    "cut_off",
    "encode_avro_content",
    "encode_block",
    "encode_deletes",
    "encode_hfile_content",
    "encode_parquet_content",
    "encode_positions",
    "ensure_sound",
    "open_block_hfile",
    "parse_deletes",
    "parse_positions",
    "read_block_rows",
    "read_blocks",
    "read_content",
    "read_deletes",
    "read_positions",
    "rows_of_entries",
    "verify_parquet_block",
]

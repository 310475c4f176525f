"""What a row is: schemas, base files, keys, partition values, ordering."""

from hoodie.records.align import align
from hoodie.records.avro import from_avro, to_avro
from hoodie.records.avro_rows import RowBytes, decode_rows, encode_rows
from hoodie.records.base_file import read_footer, verify_base_file
from hoodie.records.base_file_reader import iter_batches, read_columns
from hoodie.records.base_file_writer import BaseFileOptions, BaseFileWriter, parse_codec
from hoodie.records.bloom import BloomFilter, BloomOptions
from hoodie.records.evolve import Evolution, EvolutionRules, is_exact, promoted, reconcile
from hoodie.records.footer import BaseFooter
from hoodie.records.key_range import KeyRange, key_range
from hoodie.records.keys import KeyGenerator, KeyKind, KeyOptions, key_options, kind_of_type
from hoodie.records.one_input import OneInput, OpenInputs, opened_once
from hoodie.records.ordering import COMMIT_TIME, EVENT_TIME, OVERWRITE_WITH_LATEST, MergeRule, newer_wins, newest
from hoodie.records.partition_paths import DEFAULT_PARTITION, PathStyle, url_encoded
from hoodie.records.partition_values import PartitionColumns, partition_columns, partition_values
from hoodie.records.record_keys import RowOrigin, stored_text_form
from hoodie.records.schema import (
    COMMENT_KEY,
    COMMIT_TIME_FIELD,
    CONSTANT_FIELDS,
    FILE_NAME_FIELD,
    KEY_FIELD,
    META_FIELDS,
    META_SCHEMA,
    OPERATION_FIELD,
    PARTITION_PATH_FIELD,
    SEQNO_FIELD,
    is_meta,
    storable,
    with_meta,
    without_meta,
)
from hoodie.records.schema_mapping import ColumnIds, SchemaMapping
from hoodie.records.string_hash import java_hashes
from hoodie.records.unfinished_file import BaseFileStats
from hoodie.records.xxhash import xxhash32

__all__ = [
    "COMMENT_KEY",
    "COMMIT_TIME",
    "COMMIT_TIME_FIELD",
    "CONSTANT_FIELDS",
    "DEFAULT_PARTITION",
    "EVENT_TIME",
    "FILE_NAME_FIELD",
    "KEY_FIELD",
    "META_FIELDS",
    "META_SCHEMA",
    "OPERATION_FIELD",
    "OVERWRITE_WITH_LATEST",
    "PARTITION_PATH_FIELD",
    "SEQNO_FIELD",
    "BaseFileOptions",
    "BaseFileStats",
    "BaseFileWriter",
    "BaseFooter",
    "BloomFilter",
    "BloomOptions",
    "ColumnIds",
    "Evolution",
    "EvolutionRules",
    "KeyGenerator",
    "KeyKind",
    "KeyOptions",
    "KeyRange",
    "MergeRule",
    "OneInput",
    "OpenInputs",
    "PartitionColumns",
    "PathStyle",
    "RowBytes",
    "RowOrigin",
    "SchemaMapping",
    "align",
    "decode_rows",
    "encode_rows",
    "from_avro",
    "is_exact",
    "is_meta",
    "iter_batches",
    "java_hashes",
    "key_options",
    "key_range",
    "kind_of_type",
    "newer_wins",
    "newest",
    "opened_once",
    "parse_codec",
    "partition_columns",
    "partition_values",
    "promoted",
    "read_columns",
    "read_footer",
    "reconcile",
    "storable",
    "stored_text_form",
    "to_avro",
    "url_encoded",
    "verify_base_file",
    "with_meta",
    "without_meta",
    "xxhash32",
]

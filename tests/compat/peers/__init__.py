"""The peers of the compat tests: real Hudi and hudi-rs as server processes, and the comparison of row sets."""

from .ours import WRITE, continue_table, read_rows, table_options, write_rows
from .process import Peer, PeerFailed, hudi_peer, hudi_rs_peer
from .readers import Readers
from .rows import as_mapping, difference, ensure_same_rows, is_meta, without_meta
from .sample_rows import Model, ancient_rows, as_stored, slim_rows, typed_rows

__all__ = [
    "WRITE",
    "Model",
    "Peer",
    "PeerFailed",
    "Readers",
    "ancient_rows",
    "as_mapping",
    "as_stored",
    "continue_table",
    "difference",
    "ensure_same_rows",
    "hudi_peer",
    "hudi_rs_peer",
    "is_meta",
    "read_rows",
    "slim_rows",
    "table_options",
    "typed_rows",
    "without_meta",
    "write_rows",
]

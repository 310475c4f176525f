"""Which files make the table at an instant: listing, file slices, replaced groups, and the view over them."""

from hoodie.view.archived_completions import with_archived_completions, with_archived_writes
from hoodie.view.file_slice import BaseFile, FileGroup, FileSlice, GroupId, LogFile
from hoodie.view.listing import PartitionFiles, list_data_paths, list_files, list_partitions
from hoodie.view.many_objects import collecting_later
from hoodie.view.named_files import named_files
from hoodie.view.partition_choice import PartitionChoice
from hoodie.view.replaced import Replaced, replaced_groups
from hoodie.view.slicing import SLICING_RULES, placed_at
from hoodie.view.view import View, load_replaced, load_view, view_of

__all__ = [
    "SLICING_RULES",
    "BaseFile",
    "FileGroup",
    "FileSlice",
    "GroupId",
    "LogFile",
    "PartitionChoice",
    "PartitionFiles",
    "Replaced",
    "View",
    "collecting_later",
    "list_data_paths",
    "list_files",
    "list_partitions",
    "load_replaced",
    "load_view",
    "named_files",
    "placed_at",
    "replaced_groups",
    "view_of",
    "with_archived_completions",
    "with_archived_writes",
]

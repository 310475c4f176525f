"""Where the file list of a table comes from: its folders, its metadata table, or whoever else knows it."""

from hoodie.fileview.file_system_view import FileSystemView
from hoodie.fileview.folders import FolderView
from hoodie.fileview.metadata_listing import MetadataView
from hoodie.fileview.opening import file_view_of, open_file_view
from hoodie.fileview.writers import WriterView

__all__ = ["FileSystemView", "FolderView", "MetadataView", "WriterView", "file_view_of", "open_file_view"]

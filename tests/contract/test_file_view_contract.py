"""File-system views keep their promises: by folders, by the metadata table, for writers; and one that counts."""

from __future__ import annotations

from hoodie.fileview import FileSystemView, FolderView, WriterView, open_file_view
from hoodie.fileview.metadata_listing import MetadataView
from hoodie.state.handle import TableHandle
from hoodie.testing.counting_file_view import CountingFileView
from hoodie.testing.file_view_contract import FileViewContract
from hoodie.timeline import Timeline


class TestFolderView(FileViewContract):
    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        return FolderView(handle.storage, timeline)


class TestMetadataView(FileViewContract):
    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        view = open_file_view(handle.storage, handle.config, timeline)
        assert isinstance(view, MetadataView)
        return view


class TestWriterView(FileViewContract):
    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        return WriterView(handle, timeline)


class TestCountingFileView(FileViewContract):
    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        return CountingFileView(FolderView(handle.storage, timeline))

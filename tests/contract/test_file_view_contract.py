"""File-system views keep their promises: by folders, by the metadata table, for writers, by a timeline service; and one
that counts.
"""

from __future__ import annotations

import pytest

from hoodie.fileview import FileSystemView, FolderView, WriterView, open_file_view
from hoodie.fileview.metadata_listing import MetadataView
from hoodie.remote import FallingBackView, RemoteView
from hoodie.server import Service
from hoodie.server.embedded_view import EmbeddedSource
from hoodie.state.handle import TableHandle
from hoodie.testing.counting_file_view import CountingFileView
from hoodie.testing.file_view_contract import FileViewContract
from hoodie.testing.in_process_server import InProcessServer
from hoodie.timeline import Timeline

pytestmark = pytest.mark.sampled(3)


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


class TestEmbeddedView(FileViewContract):
    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        service = Service([])
        service.admit(handle.storage.uri, {})
        return EmbeddedSource(service).open_view(handle, timeline, None, None)


class TestRemoteView(FileViewContract):
    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        server = InProcessServer(Service([handle.storage.uri]))
        return RemoteView(server, handle.storage, timeline)


class TestFallingBackView(FileViewContract):
    """With a server that does not answer for one of the two partitions."""

    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        server = InProcessServer(Service([handle.storage.uri]), broken=("p",))
        remote = RemoteView(server, handle.storage, timeline)
        return FallingBackView(remote, lambda: FolderView(handle.storage, timeline), handle.storage)

"""Log files that were listed while a write was pending may be that write's, and it may give up without a trace: whoever
asks is answered after a look then, not by the hash of a timeline that completed writes alone make (version 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hoodie.errors import Fenced
from hoodie.remote.known_timeline import told
from hoodie.server.routes import VIEW
from hoodie.server.service import Service
from hoodie.state.handle import timeline_of
from hoodie.table import Table
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.running_server import running_server
from hoodie.transaction import Transaction

OFF = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}


class GivenUpError(Exception):
    pass


def given_up(lake: Lake, monkeypatch: pytest.MonkeyPatch, met: Callable[[], object]) -> None:
    """A write gives up at its commit; `met` is called then."""

    def commit(*_: object, **__: object) -> None:
        met()
        raise GivenUpError

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", commit)
        with pytest.raises(GivenUpError):
            lake.upsert(row("b", "given up", 3))


@pytest.fixture(params=[6, 8, 9])
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    lake = logged_lake(request.param, **OFF)
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    return lake


@pytest.mark.parametrize("at_once", [True, False])
def test_files_of_a_write_that_gave_up_are_told_nobody(
    lake: Lake, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, answers = Service([lake.uri]), []

    def about() -> dict[str, str]:
        handle = lake.handle()
        return {"basepath": lake.uri, "partition": "p", **told(timeline_of(handle), handle.config)}

    def ask() -> None:
        answer = service.answer_at_once(f"{VIEW}slices/all", about()) if at_once else None
        answers.append(answer or service.answer("GET", f"{VIEW}slices/all", about()))

    given_up(lake, monkeypatch, ask)
    assert answers[0].status == 200
    assert answers[0].is_still is None or answers[0].is_still() is (lake.version != 6)
    ask()
    assert answers[1].body == Service([lake.uri]).answer("GET", f"{VIEW}slices/all", about()).body


@pytest.mark.parametrize("view", ["REMOTE_ONLY", "REMOTE_FIRST"])
def test_reads_and_plans_by_a_service_do_not_know_them(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = logged_lake(6, **OFF)
    lake.upsert(row("a"), row("b"))
    with running_server(Service([lake.uri])) as port:
        where = {"type": view, "remote.host": "127.0.0.1", "remote.port": str(port)}
        options = {**lake.options, **{f"hoodie.filesystem.view.{name}": value for name, value in where.items()}}
        asking = Table.open(lake.uri, options=options)

        def read() -> list[object]:
            return sorted(asking.scan(columns=["id", "v"]).read_all().to_pylist(), key=str)

        given_up(lake, monkeypatch, read)
        assert read() == [{"id": "a", "v": "a"}, {"id": "b", "v": "a"}]
        asking.services.schedule_compaction(**{"hoodie.compact.inline.max.delta.commits": "1"})
        asking.services.compact()
    assert lake.values() == {"a": "a", "b": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_log_files_that_a_rollback_left_stay_when_their_writer_wakes(
    metadata: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow writer is rolled back and finds itself fenced: a service may know its log file by then."""
    slow = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.metadata.enable": metadata,
    }
    lake = logged_lake(6, **{**OFF, **slow})
    lake.upsert(row("a"), row("b"))
    service = Service([lake.uri])
    commit, answers = Transaction.commit, []

    def ask() -> None:
        handle = lake.handle()
        about = {"basepath": lake.uri, "partition": "p", **told(timeline_of(handle), handle.config)}
        answers.append(service.answer("GET", f"{VIEW}slices/all", about).body)

    def met(self: Transaction, *given: object, **named: object) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        lake.table.services.rollback(self.instant)
        ask()
        return commit(self, *given, **named)

    monkeypatch.setattr(Transaction, "commit", met)
    with pytest.raises(Fenced):
        lake.upsert(row("b", "slow", 3))
    ask()
    handle = lake.handle()
    about = {"basepath": lake.uri, "partition": "p", **told(timeline_of(handle), handle.config)}
    assert answers[0] == answers[1] == Service([lake.uri]).answer("GET", f"{VIEW}slices/all", about).body
    assert lake.values() == {"a": "a", "b": "a"}
    lake.table.services.compact(**{"hoodie.compact.inline.max.delta.commits": "1"})
    assert lake.values() == {"a": "a", "b": "a"}
    lake.ensure_sound()


def test_no_plan_names_log_files_that_a_service_alone_knows() -> None:
    """A writer that was rolled back may write on, and takes that away when it finds itself fenced."""
    lake = logged_lake(6, **OFF)
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    (log,) = (file.path for file in lake.storage.list_dir("p").files if ".log." in file.path)
    late = log.replace(".log.1_", ".log.2_")
    lake.storage.put(late, lake.storage.read(log))
    service = Service([lake.uri])
    handle = lake.handle()
    about = {"basepath": lake.uri, "partition": "p", **told(timeline_of(handle), handle.config)}
    assert late.encode() in service.answer("GET", f"{VIEW}slices/all", about).body
    lake.storage.delete(late)
    with running_server(service) as port:
        where = {"type": "REMOTE_FIRST", "remote.host": "127.0.0.1", "remote.port": str(port)}
        options = {**lake.options, **{f"hoodie.filesystem.view.{name}": value for name, value in where.items()}}
        asking = Table.open(lake.uri, options=options)
        rows = asking.scan(columns=["id", "v"]).read_all().to_pylist()
        assert sorted((one["id"], one["v"]) for one in rows) == [("a", "a2"), ("b", "a")]
        services = asking.services
        assert services.schedule_compaction(**{"hoodie.compact.inline.max.delta.commits": "1"})
        assert services.compact().rows == 2
    assert lake.values() == {"a": "a2", "b": "a"}
    lake.ensure_sound()

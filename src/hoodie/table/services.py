"""`Table.services`: what keeps a table healthy, each service and its plan before it.

Every call loads the table anew, holds its lock where the service needs that, and says what was done. Services are
loaded when they are asked for: who only reads does not wait for them. One that is registered and has no method here can
be called all the same, by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hoodie.arguments import checked_name
from hoodie.errors import Invalid
from hoodie.table.opened import OpenedTable

if TYPE_CHECKING:
    from hoodie.config import Config
    from hoodie.services.archiving.archive import ArchiveResult
    from hoodie.services.cleaning.clean import CleanResult
    from hoodie.services.clustering.expiry import ExpiredClusterings, PendingClusterings
    from hoodie.services.clustering.result import ClusteringResult, PlannedClustering
    from hoodie.services.compaction.admin import OperationCheck, RepairResult, UnscheduleResult
    from hoodie.services.compaction.result import CompactionResult
    from hoodie.services.metadata_upkeep import MetadataResult
    from hoodie.services.preview import ServicePreview
    from hoodie.services.relayout.relayout import RelayoutResult
    from hoodie.services.resizing.resize import ResizeResult
    from hoodie.services.rollback.orphans import OrphansResult
    from hoodie.services.rollback.restore import RestoreResult
    from hoodie.services.rollback.rollback import RollbackResult
    from hoodie.services.service import Service
    from hoodie.services.upgrading.upgrade import UpgradeResult
    from hoodie.spec import Instant
    from hoodie.transaction import Committed


class TableServices:
    """The services of a table. Options of a call go before those of the table."""

    def __init__(self, opened: OpenedTable) -> None:
        self._opened = opened

    def run(self, name: str, arguments: Mapping[str, Any] | None = None, **options: object) -> Any:
        """Runs the service of that name and returns its result; None when nothing was due. `dir(table.services)` has
        the names.

        Raises:
            Invalid: no such service, or an argument is missing or wrong. Conflict: another writer is at work.
        """
        from hoodie.services.registry import load_service  # noqa: PLC0415 - loads what writes
        from hoodie.services.service import run_service  # noqa: PLC0415 - loads what writes

        service, opened = load_service(name), self._opened
        given = service.checked({} if arguments is None else arguments)
        return run_service(service, name, opened.handle, self._config(service, options), opened.engine, given)

    def preview(self, name: str, *values: Any, **options: object) -> ServicePreview:
        """Plans a service without running it: files, bytes, reasons. Writes nothing.

        `values` are its arguments in order: the instant of `rollback` and `restore`, the version of `upgrade`.

        Raises:
            Invalid: no such service, it has no preview, or it needs an argument.
        """
        from hoodie.services.registry import load_service  # noqa: PLC0415 - loads what writes

        service, opened = load_service(name), self._opened
        if service.preview is None:
            raise Invalid(f"There is no preview of {name}", remedy="Run it: it does only what is due")
        names = [argument.name for argument in service.arguments]
        if len(values) > len(names):
            raise Invalid(
                f"{name} has {len(names)} arguments, and {len(values)} are given",
                remedy=f"It has {', '.join(names) or 'none'}",
            )
        given = service.checked(dict(zip(names, values, strict=False)))
        return service.preview(opened.fresh(), self._config(service, options), opened.engine, **given)

    def compact(self, instant: str | None = None, **options: object) -> CompactionResult | None:
        """Carries out the pending compaction (of `instant`, or the oldest), or plans one and carries it out. None when
        there is nothing to compact. Writers may go on meanwhile.
        """
        result: CompactionResult | None = self.run("compact", {"instant": instant}, **options)
        return result

    def schedule_compaction(self, **options: object) -> Instant | None:
        """Plans a compaction and returns its instant, or None when no file slice has log files to merge. `compact`
        carries it out, here or in another process, while writers go on.
        """
        from hoodie.services.compaction.compact import schedule_compaction  # noqa: PLC0415 - loads what writes

        with self._opened.held("plan compaction", options) as handle:
            return schedule_compaction(handle, self._opened.config(options), self._opened.engine, when_due=False)

    def unschedule_compaction(self, instant: str) -> UnscheduleResult:
        """Drops the plan of a pending compaction. Its log files stay where they are.

        Raises:
            Invalid: no such plan; or (version 6) log files carry its instant in their names.
        """
        from hoodie.services.compaction.admin import unschedule_compaction  # noqa: PLC0415 - loads what writes

        with self._opened.held("unschedule compaction") as handle:
            return unschedule_compaction(handle, self._opened.engine, checked_name("instant", instant))

    def validate_compaction(self, instant: str | None = None) -> tuple[OperationCheck, ...]:
        """Checks that every file in the plan of a pending compaction (of `instant`, or the oldest) is there."""
        from hoodie.services.compaction.admin import validate_compaction  # noqa: PLC0415 - loads what writes

        wanted = None if instant is None else checked_name("instant", instant)
        return validate_compaction(self._opened.fresh(), wanted)

    def repair_compaction(self) -> tuple[RepairResult, ...]:
        """Puts back compaction plans that are gone but whose instant committed log files carry (version 6)."""
        from hoodie.services.compaction.admin import repair_compaction  # noqa: PLC0415 - loads what writes

        with self._opened.held("repair compaction") as handle:
            return repair_compaction(handle, self._opened.config({}))

    def cluster(
        self, instant: str | None = None, op: str | None = None, **options: object
    ) -> ClusteringResult | PlannedClustering | PendingClusterings | ExpiredClusterings | None:
        """Clustering: small files become large ones, with rows sorted by `hoodie.clustering.plan.strategy.sort.columns`
        if it names any. Carries out the pending plan (of `instant`, or the oldest), or plans and carries out. `op`:
        "schedule" only plans, "execute" only carries out, "unschedule" takes the plan `instant` off, "list" tells what
        is pending, "expire" takes off what has expired. None when no files are worth it. Writers may go on meanwhile,
        but to the files of the plan.
        """
        result: ClusteringResult | PlannedClustering | PendingClusterings | ExpiredClusterings | None = self.run(
            "cluster", {"instant": instant, "op": op}, **options
        )
        return result

    def schedule_base_file_compaction(self, **options: object) -> Instant | None:
        """Plans a base-file compaction of all small base files and returns its instant, or None when there are none to
        join. `compact_base_files` carries it out, here or in another process.
        """
        from hoodie.services.clustering.base_files import BASE_FILE_COMPACTOR  # noqa: PLC0415 - loads what writes

        with self._opened.held("plan base-file compaction", options) as handle:
            return BASE_FILE_COMPACTOR.schedule(handle, self._opened.config(options), self._opened.engine)

    def compact_base_files(self, instant: str | None = None, **options: object) -> ClusteringResult | None:
        """Base-file compaction: small base files of different file groups become large ones, with rows as they are;
        row groups are copied without decoding them where they can be. Carries out the pending plan (of `instant`, or
        the oldest), or plans and carries out. None when there is nothing to join.
        """
        result: ClusteringResult | None = self.run("compact_base_files", {"instant": instant}, **options)
        return result

    def compact_logs(self, **options: object) -> CompactionResult | None:
        """Log compaction: merges small log blocks into one per file slice; None when no slice has enough of them."""
        result: CompactionResult | None = self.run("compact_logs", None, **options)
        return result

    def resize(self, **options: object) -> ResizeResult | None:
        """Splits large and merges small buckets of a consistent hashing index; None when all are of a good size. A
        resize that died is carried out first. Name the fields and numbers of the index, as for writes.
        """
        result: ResizeResult | None = self.run("resize", None, **options)
        return result

    def clean(self, **options: object) -> CleanResult | None:
        """Removes file versions that no retained commit, savepoint or pending plan needs; None when there are none."""
        result: CleanResult | None = self.run("clean", None, **options)
        return result

    def archive(self, **options: object) -> ArchiveResult | None:
        """Moves the oldest instants from the active timeline to the archived one; None when it is short enough or
        something keeps all of it (`preview` says what).
        """
        result: ArchiveResult | None = self.run("archive", None, **options)
        return result

    def rollback(self, instant: str, **options: object) -> RollbackResult:
        """Rolls back one instant: a pending one, or the newest completed one.

        Raises:
            Invalid: a savepoint or later commits stand on it; use `restore` for those.
        """
        result: RollbackResult = self.run("rollback", {"instant": instant}, **options)
        return result

    def restore(self, to: str, **options: object) -> RestoreResult:
        """Restores the table to the completed instant `to`: everything newer is rolled back and cannot come back.

        Raises:
            Invalid: no such completed instant, or its files were cleaned.
        """
        result: RestoreResult = self.run("restore", {"to": to}, **options)
        return result

    def ttl(self, **options: object) -> Committed | None:
        """Deletes partitions past their time to live, in a commit of its own; None when there are none."""
        result: Committed | None = self.run("ttl", None, **options)
        return result

    def upgrade(self, to: int = 9, **options: object) -> UpgradeResult | None:
        """Upgrades or downgrades the table to another version (6, 8 or 9); None when it has it already. A step that
        dies is finished by the next call.
        """
        result: UpgradeResult | None = self.run("upgrade", {"to": to}, **options)
        return result

    def relayout(
        self,
        to: str = "",
        *,
        move: bool = False,
        grace_hours: float | None = None,
        partition: str = "",
        claim: bool = False,
        **options: object,
    ) -> RelayoutResult | None:
        """Changes where files lie: new ones go by the storage strategy `to` (options name storage paths), with `move`
        all others, too; of one `partition`, or of all. None when all is so. A move that died is gone on with by the
        next call, whose old copies go once they are older than so many hours. `claim`: the table was moved here, or
        the objects were lost that say whose the storage paths are.
        """
        given = {"to": to, "move": move, "grace_hours": grace_hours, "partition": partition, "claim": claim}
        result: RelayoutResult | None = self.run("relayout", given, **options)
        return result

    def orphans(self, older_than_hours: float | None = None, **options: object) -> OrphansResult | None:
        """Removes orphans: data files of no write on the timeline or in the history, older than so many hours; None
        when there are none. `preview("orphans")` only finds them.
        """
        result: OrphansResult | None = self.run("orphans", {"older_than_hours": older_than_hours}, **options)
        return result

    def metadata(self, **options: object) -> MetadataResult | None:
        """Compacts, cleans and archives the metadata table; None when nothing is due."""
        result: MetadataResult | None = self.run("metadata", None, **options)
        return result

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from hoodie.services.registry import REGISTERED  # noqa: PLC0415 - loads what writes

        if name not in REGISTERED:
            raise AttributeError(f"There is no service {name!r}; there are {', '.join(REGISTERED)}")
        return partial(self.run, name)

    def __dir__(self) -> list[str]:
        from hoodie.services.registry import REGISTERED  # noqa: PLC0415 - loads what writes

        return sorted({*(name for name in vars(type(self)) if not name.startswith("_")), *REGISTERED})

    def __repr__(self) -> str:
        from hoodie.services.registry import REGISTERED  # noqa: PLC0415 - loads what writes

        lines = (f"  {service.name:<14}{service.summary}" for service in REGISTERED.values())
        return "\n".join((f"Services of {self._opened.storage.uri}:", *lines))

    def _config(self, service: Service, options: Mapping[str, object]) -> Config:
        """Options of a call, over those of the table, over those that the service sets."""
        more = options.get("options")
        said = {*self._opened.options, *options, *(more if isinstance(more, Mapping) else ())}
        return self._opened.config({**{k: v for k, v in service.options.items() if k not in said}, **options})

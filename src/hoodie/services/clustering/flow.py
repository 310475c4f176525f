"""What all services do that join file groups: plan, carry out, take a plan off; after commits, and in a preview."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid
from hoodie.locks import parse_lock_options
from hoodie.services.background import BACKGROUND
from hoodie.services.clustering.admin import unschedule_clustering
from hoodie.services.clustering.expiry import (
    ExpiredClusterings,
    PendingClusterings,
    drop_expired_plans,
    giving_signs,
    list_pending,
    note_scheduled,
)
from hoodie.services.clustering.gain import LookUpGain
from hoodie.services.clustering.grouping import (
    Grouping,
    ensure_clusterable,
    load_fates,
    load_gains,
    load_grouping,
)
from hoodie.services.clustering.options import ClusterOptions
from hoodie.services.clustering.result import ClusteringResult, PlannedClustering, planned_of, result_of
from hoodie.services.clustering.trigger import clustering_due
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.rewrite.executor import run_plan, store_plan
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import Argument
from hoodie.spec import Instant, InstantTime, RequestedReplace, TableConfig, encode_requested_replace
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.held import held_table
from hoodie.state.pending_plans import PendingPlans
from hoodie.state.table_state import TableState
from hoodie.timeline import Timeline, load_commit_metadata, new_instant_time
from hoodie.units import count_text, size_text

log = logging.getLogger(__name__)

RUN, SCHEDULE, EXECUTE, UNSCHEDULE = "scheduleAndExecute", "schedule", "execute", "unschedule"
LIST, EXPIRE = "list", "expire"
ARGUMENTS: Final = (
    Argument("instant", "the pending plan (default: the oldest, or a new one)"),
    Argument(
        "op",
        "only plan, only carry out, take a plan off, list what is pending, or take off what has expired",
        default=RUN,
        choices=(RUN, SCHEDULE, EXECUTE, UNSCHEDULE, LIST, EXPIRE),
    ),
    Argument("estimate", "columns, with commas: a preview says what look-ups by them gain (default: the sort columns)"),
)
_LOCAL: Final = LocalEngine()


@dataclass(frozen=True, slots=True)
class GroupService:
    """One of these services: `kind` of its plans, how `options` are parsed with those of a table, and what a plan says
    of itself beside its groups (`notes`).
    """

    name: str
    kind: PlanKind
    options: Callable[[Config, TableConfig], ClusterOptions]
    notes: Callable[[Grouping], Mapping[str, str]] = lambda grouping: {}

    def schedule(
        self, handle: TableHandle, config: Config, engine: Engine, *, when_due: bool = False
    ) -> Instant | None:
        """The plan that is stored now, requested; None when no files are worth it, when another writer is at work, or
        (`when_due`) when too few writes came since the last one. The caller holds the table lock. Lists the table's
        files.

        Raises:
            Invalid: an option that cannot be, or a sort column that the table does not have.
            Unsupported: a table whose rows lie in buckets, or base files of another format than Parquet.
        """
        options = self.checked_options(handle, config)
        drop_expired_plans(handle, config, _LOCAL)
        timeline = roll_back_failed_writes(handle, _LOCAL, timeline_of(handle), config)
        plans = PendingPlans(handle.storage, timeline)
        if when_due and not self._is_due(handle, timeline, plans, options):
            return None
        running = plans.incomplete_writes()
        if running:
            log.warning("no %s can be planned while %s is running", self.kind.name, running[0].requested)
            return None
        grouping = load_grouping(handle, config, plans, options, engine)
        if grouping.plan is None:
            return None
        plan = grouping.plan.noting(self.notes(grouping))
        requested = new_instant_time(handle.env, handle.config.timezone, timeline.last_time())
        request = RequestedReplace(CLUSTER, plan, {}, 1)
        encoded = encode_requested_replace(request, handle.profile.avro_generation)
        note_scheduled(handle, requested, config)
        return store_plan(handle, self.kind, requested, encoded, timeline)

    def execute(
        self, handle: TableHandle, config: Config, engine: Engine, instant: InstantTime | None = None
    ) -> ClusteringResult | None:
        """What carrying out the pending plan `instant` (None: the oldest one) has done; None when none is pending. The
        caller does not hold the table lock: it is taken, after waiting for it, to complete.

        Raises:
            Conflict: another executor works on it, or somebody wrote to its file groups; it stays pending.
            Corrupt: a file is damaged or gone. Fenced: it was taken away meanwhile. Unavailable: a restore is pending.
        """
        asked = self.kind.find(PendingPlans(handle.storage, timeline_of(handle)), instant)
        if asked is None:
            return None
        with giving_signs(handle, asked.requested, config):
            done = run_plan(handle, config, engine, self.kind, asked, held=False)
        return None if done is None else result_of(done)

    def run(  # noqa: PLR0917
        self,
        handle: TableHandle,
        config: Config,
        engine: Engine,
        instant: InstantTime | None = None,
        op: str = RUN,
        estimate: str | None = None,
    ) -> ClusteringResult | PlannedClustering | PendingClusterings | ExpiredClusterings | None:
        """What was done. `op`: plan, carry out the pending plan `instant` (None: the oldest), both (a plan that is
        pending is carried out instead of a new one), take the plan `instant` off the timeline, list what is pending, or
        take off what has expired. None when there was nothing to do. The caller does not hold the table lock.
        `estimate` is for previews.
        """
        del estimate
        if op == LIST:
            return list_pending(handle, config)
        if op == EXPIRE:
            waiting = parse_lock_options(config)
            with held_table(handle.storage, "take off expired clusterings", handle.env, waiting) as held:
                gone = drop_expired_plans(held, config, engine)
            return ExpiredClusterings(gone) if gone else None
        if op == UNSCHEDULE:
            return unschedule_clustering(handle, config, engine, self.kind, instant)
        pending = self.kind.find(PendingPlans(handle.storage, timeline_of(handle)), instant)
        if op == SCHEDULE or (op == RUN and pending is None):
            waiting = parse_lock_options(config)
            with held_table(handle.storage, f"plan {self.kind.name}", handle.env, waiting) as held:
                planned = self.schedule(held, config, engine)
                if planned is None or op == SCHEDULE:
                    return None if planned is None else planned_of(held, planned, "planned")
        return self.execute(load_handle(handle.storage, handle.env), config, engine, instant)

    def preview(  # noqa: PLR0917
        self,
        handle: TableHandle,
        config: Config,
        engine: Engine,
        instant: InstantTime | None = None,
        op: str = RUN,
        estimate: str | None = None,
    ) -> ServicePreview:
        """What `run` would do now: a step for each group of slices. Notes: bytes and files before and after, and what
        look-ups gain by the columns of `estimate`, or by the sort columns.

        Raises:
            Invalid: there is no such column or plan, or `op` neither plans nor carries out. Else as `schedule`.
        """
        if op in (LIST, EXPIRE, UNSCHEDULE):
            raise Invalid(
                f"A preview shows what a plan would do, and {op} is about plans that are there",
                remedy=f"Run it; {LIST} only tells what is pending, and what of that has expired",
            )
        options = self.checked_options(handle, config)
        plans = PendingPlans(handle.storage, timeline_of(handle))
        pending = None if op == SCHEDULE else self.kind.find(plans, instant)
        if pending is not None:
            note = (
                f"the pending plan {pending.requested} of {len(plans.groups(pending))} file groups is carried out first"
            )
            return ServicePreview(self.name, (), (note,))
        if op == EXECUTE:
            return ServicePreview(self.name, (), ("no plan is pending",))
        grouping = load_grouping(handle, config, plans, options, engine)
        fates = load_fates(handle, plans, options, grouping)
        steps = tuple(
            PreviewStep(
                "rewrite",
                group.partition,
                group.slices[0].file_id,
                tuple(path for part in group.slices for path in part.paths),
                group.size_bytes,
                fate,
            )
            for group, fate in zip(grouping.groups, fates, strict=True)
        )
        if not steps:
            return ServicePreview(self.name, (), ("no files are worth rewriting",))
        columns = tuple(name for part in (estimate or "").split(",") if (name := part.strip()))
        gains = load_gains(handle, plans, options, grouping, columns, engine)
        return ServicePreview(self.name, steps, (_sizes_text(grouping), *map(_gain_text, gains)))

    def checked_options(self, handle: TableHandle, config: Config) -> ClusterOptions:
        """The options, on a table whose file groups may be joined. Raises as `schedule`."""
        ensure_clusterable(handle, config)
        return self.options(config, handle.config)

    def may_act(self, state: TableState, config: Config) -> bool:
        """Whether there is a plan, or enough was written for one."""
        options = self.options(config, state.handle.config)
        return bool(self.kind.pending(state.plans)) or self._is_due(state.handle, state.timeline, state.plans, options)

    def run_when_due(self, handle: TableHandle, config: Config, engine: Engine) -> ClusteringResult | None:
        """Carries out what is pending, then plans and carries out, where that is due."""
        while self.kind.find(PendingPlans(handle.storage, timeline_of(handle)), None) is not None:
            self.execute(handle, config, engine)
            handle = load_handle(handle.storage, handle.env)
        options = parse_lock_options(config).waiting(0)
        with held_table(handle.storage, f"plan {self.kind.name}", handle.env, options) as held:
            if self.schedule(held, config, engine, when_due=True) is None:
                return None
        return self.execute(load_handle(handle.storage, handle.env), config, engine)

    def hand_over_when_due(self, handle: TableHandle, config: Config, engine: Engine) -> Instant | None:
        """Plans where that is due and nothing is pending, and hands what is pending over to a thread of this process.
        Returns what was planned. The caller does not hold the table lock.
        """
        planned = None
        if not self.kind.pending(PendingPlans(handle.storage, timeline_of(handle))):
            options = parse_lock_options(config).waiting(0)
            with held_table(handle.storage, f"plan {self.kind.name}", handle.env, options) as held:
                planned = self.schedule(held, config, engine, when_due=True)
            if planned is None:
                return None
        storage, env = handle.storage, handle.env
        BACKGROUND.submit(
            storage.uri,
            self.kind.name,
            lambda: self._carry_all_out(load_handle(storage, env), config, engine),
        )
        return planned

    def _carry_all_out(self, handle: TableHandle, config: Config, engine: Engine) -> None:
        while self.execute(handle, config, engine) is not None:
            handle = load_handle(handle.storage, handle.env)

    def plan_when_due(self, handle: TableHandle, config: Config, engine: Engine) -> Instant | None:
        """Plans where that is due and nothing is pending. The caller holds the table lock."""
        if self.kind.pending(PendingPlans(handle.storage, timeline_of(handle))):
            return None
        return self.schedule(handle, config, engine, when_due=True)

    def _is_due(self, handle: TableHandle, timeline: Timeline, plans: PendingPlans, options: ClusterOptions) -> bool:
        def is_last(instant: Instant) -> bool:
            said = load_commit_metadata(handle.storage, handle.profile, instant)
            return said.operation_type == CLUSTER

        pending = [one.requested for one in self.kind.pending(plans)]
        return clustering_due(timeline, pending, is_last, options.max_commits)


def _sizes_text(grouping: Grouping) -> str:
    groups = grouping.groups
    slices, files = sum(len(group.slices) for group in groups), sum(group.outputs for group in groups)
    size = sum(group.size_bytes for group in groups)
    return (
        f"{count_text(slices, 'file group')} of {size_text(size)} become {files:,}, of about "
        f"{size_text(size // max(1, files))}; the table has {len(grouping.slices):,} now, and "
        f"{len(grouping.slices) - slices + files:,} afterwards"
    )


def _gain_text(gain: LookUpGain) -> str:
    return (
        f"one value of {gain.column} is looked up in about {gain.reads:.1f} of {gain.files:,} file groups now, in "
        f"{gain.reads_after:.1f} of {gain.files_after:,} afterwards"
    )


def asked_by(key: str) -> Callable[[TableHandle, Config], bool]:
    """Whether a service is asked for by the switch `key`."""

    def is_asked(handle: TableHandle, config: Config) -> bool:
        del handle
        return config.flag(key)

    return is_asked

"""Base-file compaction: small base files of several file groups become one, with rows as they were (RFC-19, option 1).

1. It is a clustering without an order, over all small base files of all partitions: one operation for each file it
   makes, of files in the order of their commits. Slices with log files are left to compactions.
2. So its plan is that of a clustering, on the same instants: writers leave its file groups alone, and whoever carries
   out clusterings, Hudi too, can carry it out. What RFC-19 calls the plan stands in its extra metadata, and in that of
   the commit (`hoodie.spec.base_file_plan`).
3. The old files stay for readers until a clean takes them. RFC-19 deletes them at once.
4. Row groups are copied where they can be (`stitch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.services.clustering.flow import ARGUMENTS, GroupService, asked_by
from hoodie.services.clustering.grouping import Grouping
from hoodie.services.clustering.options import parse_base_file_options
from hoodie.services.clustering.rewrite import rewrite_groups
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.services.service import AfterCommit, Service
from hoodie.spec import CLUSTERING, Instant
from hoodie.spec.base_file_plan import BASE_FILE_PLAN, BaseFileOperation, BaseFilePlan, encode_base_file_plan
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.pending_plans import PendingPlans
from hoodie.transaction import GroupsUnchanged, LockPolicy


def _pending(plans: PendingPlans) -> list[Instant]:
    found = []
    for one in plans.instants(CLUSTERING):
        plan = plans.clustering(one).clustering_plan
        if plan is not None and BASE_FILE_PLAN in (plan.extra_metadata or {}):
            found.append(one)
    return found


BASE_FILE_COMPACTIONS: Final = PlanKind(
    name="base-file compaction",
    action=CLUSTERING,
    operation=CLUSTER,
    pending=_pending,
    rewrite=rewrite_groups,
    rule=GroupsUnchanged(),
)


def _notes(grouping: Grouping) -> Mapping[str, str]:
    planned = () if grouping.plan is None else grouping.plan.groups
    operations = tuple(
        BaseFileOperation(
            group.slices[0].partition, tuple(one.base_path or "" for one in group.slices), group.metrics or {}
        )
        for group in planned
    )
    return {BASE_FILE_PLAN: encode_base_file_plan(BaseFilePlan(operations))}


BASE_FILE_COMPACTOR: Final = GroupService("compact_base_files", BASE_FILE_COMPACTIONS, parse_base_file_options, _notes)

SERVICE: Final = Service(
    name="compact_base_files",
    nothing="there are no small base files to join",
    run=BASE_FILE_COMPACTOR.run,
    preview=BASE_FILE_COMPACTOR.preview,
    lock=LockPolicy.AT_BOTH_ENDS,
    arguments=ARGUMENTS,
    after_commit=(
        AfterCommit(
            "base-file compaction",
            asked_by("hoodie.base.file.compaction.inline"),
            BASE_FILE_COMPACTOR.may_act,
            BASE_FILE_COMPACTOR.run_when_due,
            LockPolicy.AT_BOTH_ENDS,
        ),
        AfterCommit(
            "base-file compaction in the background",
            asked_by("hoodie.base.file.compaction.async.enabled"),
            BASE_FILE_COMPACTOR.may_act,
            BASE_FILE_COMPACTOR.hand_over_when_due,
            LockPolicy.AT_BOTH_ENDS,
        ),
    ),
)

"""Clustering: small file groups are replaced by larger ones, with their rows sorted where columns are named.

1. Planning takes the table lock for a moment and stores a plan on the timeline. Carrying it out needs no exclusion
   until it completes: reads go on, and so do writes, but those that want a file group of the plan are refused.
2. Rows do not change: commit times, sequence numbers and keys are kept, so incremental and change queries show none of
   them as new.
3. It completes as a replacecommit of operation CLUSTER. The old files stay for readers until a clean takes them.
4. Hudi can carry out our plans and we Hudi's. A plan names its sort columns, and the curve under a key of its option
   that Hudi reads past. Plans that resize buckets are another kind (`resizing`).
5. What dies is done again: see `hoodie.services.rewrite.executor`.
"""

from __future__ import annotations

from typing import Final

from hoodie.services.clustering.flow import ARGUMENTS, GroupService, asked_by
from hoodie.services.clustering.options import ASYNC, parse_cluster_options
from hoodie.services.clustering.rewrite import rewrite_groups
from hoodie.services.resizing.plan import pending_resizes
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.services.service import AfterCommit, Service
from hoodie.spec import CLUSTERING, Instant
from hoodie.spec.replace_plan import CLUSTER
from hoodie.state.pending_plans import PendingPlans
from hoodie.transaction import GroupsUnchanged, LockPolicy


def _pending(plans: PendingPlans) -> list[Instant]:
    resizes = set(pending_resizes(plans))
    return [one for one in plans.instants(CLUSTERING) if one not in resizes]


CLUSTERINGS: Final = PlanKind(
    name="clustering",
    action=CLUSTERING,
    operation=CLUSTER,
    pending=_pending,
    rewrite=rewrite_groups,
    rule=GroupsUnchanged(),
)


CLUSTERER: Final = GroupService("cluster", CLUSTERINGS, parse_cluster_options)

SERVICE: Final = Service(
    name="cluster",
    nothing="no files are worth rewriting",
    run=CLUSTERER.run,
    preview=CLUSTERER.preview,
    lock=LockPolicy.AT_BOTH_ENDS,
    arguments=ARGUMENTS,
    after_commit=(
        AfterCommit(
            "clustering",
            asked_by("hoodie.clustering.inline"),
            CLUSTERER.may_act,
            CLUSTERER.run_when_due,
            LockPolicy.AT_BOTH_ENDS,
        ),
        AfterCommit(
            "planning a clustering",
            asked_by("hoodie.clustering.schedule.inline"),
            CLUSTERER.may_act,
            CLUSTERER.plan_when_due,
        ),
        AfterCommit(
            "clustering in the background",
            asked_by(ASYNC),
            CLUSTERER.may_act,
            CLUSTERER.hand_over_when_due,
            LockPolicy.AT_BOTH_ENDS,
        ),
    ),
)

"""What the tasks of a plan share: how slices are read, how files are named and written, and what the commit repeats.

A task reads a file slice by the reader's own merge, so what a snapshot shows before is what the new files hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.engine import Engine, TaskId
from hoodie.errors import Invalid
from hoodie.logs import read_blocks
from hoodie.metadata_writer import MetadataOptions, rewrite_needs
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.query import ReadFacts
from hoodie.records import OPERATION_FIELD, BaseFooter, ColumnIds, to_avro, with_meta, without_meta
from hoodie.services.rewrite.plan_kind import PlanRun
from hoodie.services.rewrite.plan_slices import PlanSlices
from hoodie.slices import READ_BATCH_ROWS, MergedSlices, MergePlan, SliceRead, plan_merge
from hoodie.spec import keys
from hoodie.state.handle import TableHandle
from hoodie.timeline import load_commit_metadata
from hoodie.transaction import markers_for
from hoodie.write.change_log import ChangeLogging, change_logging_of
from hoodie.write.new_base_file import FileTarget


@dataclass(frozen=True, slots=True, eq=False)
class RewriteTarget(FileTarget):
    """What all tasks of a plan share. `schema` has the stored data columns; `attempt` is where the attempt
    numbers of this run begin: two runs of one plan never give a file the same name. `changes`: how merged changes are
    logged, where they are. `needs`: what indexes need to know of its files.
    """

    schema: pa.Schema
    populate_meta_fields: bool
    merge: MergePlan
    ids: ColumnIds | None
    batch_rows: int
    attempt: int
    changes: ChangeLogging | None = None
    needs: IndexNeeds = field(default_factory=IndexNeeds)

    def token(self, task_id: TaskId) -> str:
        """The write token of files of this task."""
        return TaskId(task_id.partition, task_id.stage, self.attempt + task_id.attempt).token

    def slices(self, part: SliceRead, footer: BaseFooter | None) -> MergedSlices:
        """How the slice is read: all of its stored columns."""
        schema = self.schema
        if self.populate_meta_fields:
            schema = with_meta(schema, operation=self.has_operation(part, footer))
        return MergedSlices(self.storage, self.merge, schema, self.ids, self.batch_rows)

    def has_operation(self, part: SliceRead, footer: BaseFooter | None) -> bool:
        """Whether rows carry the sixth meta column, which a table's schema does not tell."""
        if footer is not None:
            return OPERATION_FIELD in footer.schema.names
        blocks = (block for log in part.logs for block in read_blocks(self.storage, log.path, log.size_bytes))
        first = next((block for block in blocks if block.kind.is_data), None)
        return first is not None and f'"{OPERATION_FIELD}"' in first.schema


def prepare_tasks(run: PlanRun, found: PlanSlices) -> tuple[Engine, RewriteTarget]:
    """The engine that runs the tasks of a plan, and what they share.

    Raises:
        Unsupported: the table merges by a rule nobody registered.
    """
    handle, config, facts = run.handle, run.handle.config, found.facts
    engine = run.options.engine_for(found.size_bytes, run.engine)
    if facts.schema is None:
        raise Invalid(f"Nobody knows the schema of table {config.name}", remedy="Write to it once")
    dropped = config.partition_fields if config.drop_partition_columns else ()
    own = without_meta(facts.schema)
    stored = own if not dropped else _without(own, dropped)
    merge_options = run.options.for_tasks(engine.parallelism)
    merge = plan_merge(stored, stored.names, config, found.view.timeline, merge_options)
    target = RewriteTarget(
        storage=handle.storage,
        env=handle.env,
        instant=run.instant.requested,
        schema=stored,
        populate_meta_fields=config.populate_meta_fields,
        table_name=config.name,
        options=run.options.base_file,
        markers=markers_for(handle.storage, run.instant.requested, run.config, run.attempt),
        merge=merge,
        ids=facts.ids,
        batch_rows=READ_BATCH_ROWS,
        attempt=run.attempt,
        changes=_change_logging(handle),
        needs=rewrite_needs(handle, found.view.timeline, MetadataOptions.of(run.config), own),
    )
    return engine, target


def _change_logging(handle: TableHandle) -> ChangeLogging | None:
    """How rewrites of the table log changes; None when they do not."""
    logs = handle.profile.capabilities.compactions_log_changes and handle.config.populate_meta_fields
    return change_logging_of(handle) if logs else None


def schema_metadata(run: PlanRun, facts: ReadFacts) -> dict[str, str]:
    """What a commit that changes no row says beside its files: the schema as it was."""
    handle, extra = run.handle, {}
    if facts.schema is not None:
        extra[keys.SCHEMA_EXTRA] = to_avro(without_meta(facts.schema), handle.config.name)
    for one in reversed(run.plans.timeline.completed_writes()):
        said = load_commit_metadata(handle.storage, handle.profile, one)
        if said.schema is not None:
            # Hudi looks for the columns' ids in the newest commit alone.
            latest = said.extra_metadata.get(keys.LATEST_SCHEMA_EXTRA)
            return extra | {keys.LATEST_SCHEMA_EXTRA: latest} if latest else extra
    return extra


def _without(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])

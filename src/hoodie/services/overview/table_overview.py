"""All that the page about a table shows: how it is, what happened to it, what waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.query import Finding
from hoodie.services.health import TableHealth, health_of, looked_at, overlaps_if_sound
from hoodie.services.overlaps import ColumnOverlap
from hoodie.services.overview.instant_works import InstantWork, Known, load_works
from hoodie.services.overview.waiting import Waiting, load_waiting
from hoodie.spec import TableConfig
from hoodie.state.handle import TableHandle
from hoodie.view import View


@dataclass(frozen=True, slots=True, eq=False)
class TableOverview:
    """A table as one look found it. `works` has an entry for each instant of the active timeline, oldest first;
    `is_examined`: whether files were opened and compared with what the table says of them, as `hoodie doctor` does.
    """

    config: TableConfig
    health: TableHealth
    works: tuple[InstantWork, ...]
    waiting: tuple[Waiting, ...]
    is_examined: bool


def overview_of(
    handle: TableHandle,
    config: Config,
    view: View,
    *,
    findings: Sequence[Finding] | None = None,
    known: Known | None = None,
    engine: Engine | None = None,
    overlaps: tuple[ColumnOverlap, ...] = (),
) -> TableOverview:
    """The overview of a table whose files are in `view`. `findings`: what `validate` found, where somebody asked it;
    `known`: what is known of instants already; `overlaps`: how columns overlap, where somebody looked. Reads the newest
    instants (`load_works`) and what is pending.
    """
    return TableOverview(
        config=handle.config,
        health=health_of(handle, config, view, findings or (), overlaps),
        works=load_works(handle, view.timeline.instants, known, engine),
        waiting=load_waiting(handle, config, view.timeline, view.slices_at()),
        is_examined=findings is not None,
    )


def examined_overview(handle: TableHandle, config: Config, engine: Engine | None = None) -> TableOverview:
    """The overview of a table with all that is wrong with it. Costs what `hoodie doctor` does, and one read for each
    of the newest instants.

    Raises:
        Corrupt: the properties or the timeline cannot be read at all.
    """
    view, findings = looked_at(handle, engine)
    overlaps = overlaps_if_sound(handle, view, findings, engine)
    return overview_of(handle, config, view, findings=findings, engine=engine, overlaps=overlaps)

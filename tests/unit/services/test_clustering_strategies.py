"""Plan strategies: which slices each puts together, what the plan says, and what classes of a caller's own may do."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.config import resolve
from hoodie.errors import Invalid
from hoodie.services.clustering.options import parse_cluster_options
from hoodie.services.clustering.overlap import ValueRange, boxes_of, connected, mean_depth
from hoodie.services.clustering.own_strategies import OwnPlan
from hoodie.services.clustering.plan import clustering_plan, plan_groups
from hoodie.services.clustering.plan_strategy import CommitFiles, PlainPlan, PlanFacts, PlanNeeds
from hoodie.services.clustering.strategies import CHECKPOINT
from hoodie.spec import BaseFileName, InstantTime, TableConfig
from hoodie.view import BaseFile, FileSlice

PLAN = "hoodie.clustering.plan.strategy"
PROPERTIES = {"hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id"}
TABLE = TableConfig(PROPERTIES)
MIB = 1 << 20


def options(name=None, **said):
    given = {f"{PLAN}.{key.replace('__', '.')}": str(value) for key, value in said.items()}
    own = {key: given.pop(f"{PLAN}.{key}") for key in list(said) if key.startswith("hoodie")}
    return parse_cluster_options(resolve({**given, **own, **({f"{PLAN}.class": name} if name else {})}), TABLE)


def part_of(number, size=512 * MIB, partition="p"):
    name = BaseFileName(f"{partition}{number}-0", "0-0-0", InstantTime(f"202601010000000{number:02}"))
    return FileSlice(partition, name.file_id, name.instant, BaseFile(f"{partition}/{name.text}", name, size))


def ranged(*bounds, column="c", size=512 * MIB):
    """Slices with these ranges of a column, and what is known of them."""
    slices = [part_of(number, size) for number in range(len(bounds))]
    known = {
        part.group_id: {column: ValueRange(*one)} for part, one in zip(slices, bounds, strict=True) if one is not None
    }
    return slices, PlanFacts(known)


def members(found):
    """File numbers of each group, and how many files it becomes."""
    return [([int(part.file_id[1:-2]) for part in group.slices], group.outputs) for group in found.groups]


BIG = {"small__file__limit": 600 * MIB, "target__file__max__bytes": 1024 * MIB}
EIGHT = [(0, 9), (10, 19), (20, 29), (30, 39), (40, 49), (50, 59), (60, 69), (70, 79)]


def test_worked_example_of_the_rfc_with_two_of_eight_files_that_overlap():
    slices, facts = ranged(*EIGHT[:6], (60, 75), EIGHT[7])
    found = plan_groups(slices, options("ColumnOverlap", overlap__columns="c", **BIG), facts=facts)
    assert members(found) == [([6, 7], 1), ([0, 1], 1), ([2, 3], 1), ([4, 5], 1)]


def test_worked_example_of_the_rfc_with_four_of_eight_files_that_overlap():
    slices, facts = ranged(*EIGHT[:4], (40, 55), (50, 65), (60, 75), EIGHT[7])
    found = plan_groups(slices, options("ColumnOverlap", overlap__columns="c", **BIG), facts=facts)
    assert members(found) == [([4, 5, 6, 7], 2), ([0, 1], 1), ([2, 3], 1)]


def test_files_that_overlap_most_come_first_and_unknown_ones_last():
    slices, facts = ranged((0, 5), (4, 9), None, (20, 29), (20, 29), (20, 29), size=MIB)
    found = plan_groups(slices, options("ColumnOverlap", overlap__columns="c"), facts=facts)
    assert [group for group, _ in members(found)] == [[3, 4, 5], [0, 1]]
    assert plan_groups(
        slices[:3], options("ColumnOverlap", overlap__columns="c", sort__columns="c"), facts=facts
    ).groups


def test_groups_hold_files_of_the_target_size():
    slices, facts = ranged(*[(0, 9)] * 8, size=100)
    asked = options("ColumnOverlap", overlap__columns="c", max__bytes__per__group=390, target__file__max__bytes=150)
    found = plan_groups(slices, asked, facts=facts)
    assert [(len(group), outputs) for group, outputs in members(found)] == [(3, 2), (3, 2), (2, 2)]


def test_boxes_of_two_columns_overlap_where_they_do_in_both():
    def box(a, b):
        return [ValueRange(*a), ValueRange(*b)]

    boxes = [box((0, 5), "am"), box((3, 8), "nz"), box((4, 9), "lo"), box((20, 30), "az")]
    assert connected(boxes_of(boxes)) == [[0, 1, 2], [3]]
    assert connected(boxes_of([box((0, 5), "am"), box((3, 8), "nz")])) == [[0], [1]]


def test_depth_is_how_many_files_a_look_up_reads():
    def column(*bounds):
        return [[ValueRange(*one)] for one in bounds]

    assert mean_depth([]) == 0
    assert mean_depth(column(*EIGHT)) == 1
    assert mean_depth(column(*[("a", "z")] * 5)) == 5
    assert mean_depth(column((0, 5), (4, 9), (20, 29))) == pytest.approx(5 / 3)
    both = [[ValueRange(0, 9), ValueRange(0, 9)], [ValueRange(5, 9), ValueRange(20, 29)]]
    assert mean_depth(both) == 1


def test_key_ranges_put_neighbours_together():
    bounds = [("k7", "k8"), ("k0", "k1"), ("k4", "k5"), ("k2", "k3")]
    slices, facts = ranged(*bounds, column="_hoodie_record_key", size=100)
    asked = options("KeyRange", target__file__max__bytes=200)
    assert asked.strategy.needs.columns == ("_hoodie_record_key",)
    assert members(plan_groups(slices, asked, facts=facts)) == [([1, 3], 1), ([2, 0], 1)]
    bare = TableConfig({**PROPERTIES, "hoodie.populate.meta.fields": "false"})
    found = parse_cluster_options(resolve({f"{PLAN}.class": "KeyRange"}), bare)
    assert found.strategy.needs.columns == ("id",)


def test_chance_is_another_with_each_plan_and_loses_no_slice():
    slices = [part_of(number, 10) for number in range(20)]
    asked = options("Random", max__bytes__per__group=50)
    first, again, other = (
        members(plan_groups(slices, asked, facts=PlanFacts(seed=seed))) for seed in (0.25, 0.25, 0.75)
    )
    assert first == again != other
    assert sorted(number for group, _ in other for number in group) == list(range(20))


def test_commits_are_taken_in_their_order_whatever_the_size_of_files():
    slices = [part_of(number, size) for number, size in enumerate([400 * MIB, 10, 20, 30])]
    ids = [part.group_id for part in slices]
    name = "org.apache.hudi.client.clustering.plan.strategy.CommitBasedClusteringPlanStrategy"
    asked = options(name, earliest__commit__to__cluster="20260101", max__bytes__per__group=50, max__num__groups=2)
    assert asked.strategy.needs == PlanNeeds(commits_after="20260101", any_size=True)
    commits = (
        CommitFiles(InstantTime("20260102"), (ids[1], ids[2])),
        CommitFiles(InstantTime("20260103"), (ids[2], ("p", "gone"))),
        CommitFiles(InstantTime("20260104"), (ids[0],)),
        CommitFiles(InstantTime("20260105"), (ids[3],)),
    )
    facts = PlanFacts(commits=commits)
    found = plan_groups(slices, asked, facts=facts)
    assert members(found) == [([1, 2], 1)]
    assert asked.strategy.notes((), facts) == {CHECKPOINT: "20260105"}
    assert asked.strategy.notes([ids[0]], facts) == {CHECKPOINT: "20260103"}
    assert asked.strategy.notes([ids[1]], facts) == {CHECKPOINT: "20260101"}


def by_key(order, **more):
    given = {"hoodie.clustering.plan.groups.sort.by": order, f"{PLAN}.max.bytes.per.group": "70", **more}
    return parse_cluster_options(resolve({**given, f"{PLAN}.sort.columns": "c"}), TABLE)


def test_groups_may_have_an_order_of_their_own_before_a_plan_is_cut():
    slices = [*(part_of(n, 30) for n in range(2)), *(part_of(n, 20, "q") for n in range(3)), part_of(9, 65, "r")]

    def partitions(order, **more):
        return [group.partition for group in plan_groups(slices, by_key(order, **more), facts=facts).groups]

    spread = dict(
        zip([part.group_id for part in slices], [(0, 1), (2, 3), (0, 9), (0, 9), (0, 9), (0, 9)], strict=True)
    )
    facts = PlanFacts({group: {"c": ValueRange(*one)} for group, one in spread.items()})
    assert partitions("PARTITION") == ["p", "q", "r"]
    assert partitions("BYTES") == ["r", "p", "q"]
    assert partitions("FILES") == ["q", "p", "r"]
    assert partitions("OVERLAP", **{f"{PLAN}.max.num.groups": "1"}) == ["q"]
    assert partitions("PARTITION", **{"hoodie.clustering.plan.group.min.files": "3"}) == ["q"]


def test_a_plan_tells_ranges_and_what_was_asked_for():
    slices, facts = ranged((1, 5), (4, 9), size=MIB)
    known = {
        group: {**one, "s": ValueRange("a", "z" * 300), "b": ValueRange(b"\x01", b"\xff")}
        for group, one in facts.ranges.items()
    }
    asked = options("ColumnOverlap", overlap__columns="c", sort__columns="s")
    found = plan_groups(slices, asked, facts=PlanFacts(known))
    plan = clustering_plan(found.groups, (), asked, str, {})
    (group,) = plan.groups
    assert {key: value for key, value in group.metrics.items() if "." in key} == {"min.c": 1.0, "max.c": 9.0}
    assert group.extra_metadata == {"min.s": "a", "min.b": "01", "max.b": "ff"}
    assert plan.strategy.class_name.endswith("SparkSortAndSizeExecutionStrategy")
    assert plan.strategy.params == {
        f"{PLAN}.sort.columns": "s",
        f"{PLAN}.class": "ColumnOverlap",
        f"{PLAN}.overlap.columns": "c",
    }


@dataclass(frozen=True)
class Newest(PlainPlan):
    """A strategy of a caller's own: the two newest slices of each partition, partitions from the last to the first."""

    config: object
    table: object

    def arrange(self, slices, facts):
        return [sorted(slices, key=lambda part: part.base_instant)[-2:]]

    def choose(self, groups):
        return groups[::-1]

    def notes(self, left, facts):
        return {"left": len(left)}


def test_a_class_of_ones_own_says_which_slices_go_together():
    slices = [part_of(number, 10, partition) for partition in "pq" for number in range(3)]
    asked = options(f"{__name__}:Newest")
    found = plan_groups(slices, asked)
    assert [group.partition for group in found.groups] == ["q", "p"]
    assert members(found) == [([1, 2], 1), ([1, 2], 1)]
    assert asked.strategy.notes([("p", "x")], PlanFacts()) == {"left": "1"}
    assert asked.said == {f"{PLAN}.class": f"{__name__}:Newest"}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"arrange": lambda slices, facts: [[slices[0]], [slices[0]]]}, "a slice twice"),
        ({"arrange": lambda slices, facts: [[part_of(77)]]}, "not asked about"),
        ({"arrange": lambda slices, facts: 1 / 0}, "ZeroDivisionError"),
        ({"choose": lambda groups: [*groups, *groups]}, "a group twice"),
        ({"notes": lambda left, facts: None}, "AttributeError"),
    ],
)
def test_wrong_answers_of_a_class_of_ones_own_are_found_out(answers, said):
    plain = {"needs": PlanNeeds(), "arrange": lambda slices, facts: [slices], "choose": lambda groups: groups}
    own = OwnPlan("my.module:Own", SimpleNamespace(**{**plain, "notes": lambda left, facts: {}, **answers}))
    slices = [part_of(number, 10) for number in range(3)]

    def asked():
        groups = [SimpleNamespace(slices=group) for group in own.arrange(slices, PlanFacts())]
        return own.choose(groups), own.notes((), PlanFacts())

    with pytest.raises(Invalid, match=said):
        asked()


def test_ranges_of_keys_need_keys(tmp_path):
    options = {"hoodie.table.name": "t", "hoodie.populate.meta.fields": "false"}
    table = Table.create(str(tmp_path / "t"), options=options)
    for number in range(3):
        table.append(pa.table({"a": [number, 2]}))
    with pytest.raises(Invalid, match="needs record keys"):
        table.services.cluster(**{"hoodie.clustering.plan.strategy.class": "KeyRange"})

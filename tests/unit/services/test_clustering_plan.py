"""Which slices are grouped, which partitions are taken, and what options say."""

from __future__ import annotations

import pytest

from hoodie.config import resolve
from hoodie.errors import Invalid, Unsupported
from hoodie.services.clustering.options import PartitionChoice, parse_cluster_options
from hoodie.services.clustering.partitions import chosen_partitions
from hoodie.services.clustering.plan import clustering_plan, plan_groups
from hoodie.spec import BaseFileName, InstantTime, TableConfig
from hoodie.view import BaseFile, FileSlice

PLAN = "hoodie.clustering.plan.strategy"
TABLE = TableConfig({"hoodie.table.name": "t"})
DAYS = ("2026/01/01", "2026/01/02", "2026/01/03", "z")


def options(**said):
    given = {f"{PLAN}.{name.replace('__', '.')}": value for name, value in said.items()}
    return parse_cluster_options(resolve(given), TABLE)


def slices(*sizes, partition="p"):
    """Slices with base files of these sizes, the first of the oldest commit."""
    found = []
    for at, size in enumerate(sizes):
        name = BaseFileName(f"{partition}{at}-0", "0-0-0", InstantTime(f"2026010100000000{at}"))
        found.append(FileSlice(partition, name.file_id, name.instant, BaseFile(f"{partition}/{name.text}", name, size)))
    return found


def shown(groups):
    return [([part.base.size_bytes for part in group.slices], group.outputs) for group in groups]


def test_small_slices_are_packed_from_the_largest_on():
    found = plan_groups(
        slices(10, 40, 30, 100, 20),
        options(small__file__limit=100, max__bytes__per__group=70, target__file__max__bytes=50),
    )
    assert shown(found.groups) == [([40, 30], 2), ([20, 10], 1)]
    assert found.missing == ()


def test_by_instant_they_are_packed_in_the_order_of_their_commits():
    found = plan_groups(slices(10, 40, 30), options(file__slices__sort__by="INSTANT_TIME", max__bytes__per__group=60))
    assert shown(found.groups) == [([10, 40], 1)]


def test_a_single_slice_is_rewritten_when_that_helps():
    one = slices(10)
    assert plan_groups(one, options()).groups == ()
    assert shown(plan_groups(one, options(sort__columns="v")).groups) == [([10], 1)]
    assert plan_groups(one, options(sort__columns="v"), {one[0].group_id}).groups == ()
    split = plan_groups(one, options(sort__columns="v", target__file__max__bytes=4), {one[0].group_id})
    assert shown(split.groups) == [([10], 3)]


def test_partitions_take_turns_when_there_are_too_many_groups():
    parts = [*slices(9, 8, 7, 6), *slices(5, 4, partition="q")]
    found = plan_groups(parts, options(max__num__groups=2, max__bytes__per__group=17))
    assert [(group.partition, len(group.slices)) for group in found.groups] == [("p", 2), ("q", 2)]
    assert found.missing == ("p",)
    assert [part.base.size_bytes for part in found.cut] == [7, 6]


def test_a_plan_has_hudis_members():
    parts = slices(3 << 20, 2 << 20)
    chosen = options(sort__columns="a, b")
    found = plan_groups(parts, chosen)
    plan = clustering_plan(found.groups, found.missing, chosen, lambda path: f"/table/{path}", {})
    assert plan.strategy.params == {f"{PLAN}.sort.columns": "a,b"}
    assert plan.groups[0].metrics == {
        "TOTAL_IO_READ_MB": 5.0,
        "TOTAL_IO_WRITE_MB": 5.0,
        "TOTAL_IO_MB": 10.0,
        "TOTAL_LOG_FILES_SIZE": 0.0,
        "TOTAL_LOG_FILES": 0.0,
    }
    one = plan.groups[0].slices[0]
    assert (one.data_file, one.log_files, one.bootstrap_file) == (f"/table/{parts[0].base.path}", (), "")


RULES = "hoodie.clustering.plan.partition.sort.columns"


def test_partitions_have_orders_of_their_own_which_stand_in_their_groups():
    said = {
        f"{PLAN}.sort.columns": "v",
        "hoodie.layout.optimize.strategy": "ZORDER",
        RULES: r"region=eu/.*:a, b; region=.*/old: ;",
    }
    chosen = parse_cluster_options(resolve(said), TABLE)
    partitions = ["region=eu/new", "region=us/old", "region=eu/old", "region=us/new", "a/region=eu/x"]
    parts = [one for name in partitions for one in slices(10, 20, partition=name)]
    found = plan_groups(parts, chosen)
    plan = clustering_plan(found.groups, found.missing, chosen, lambda path: path, {})
    orders = [plan.sort_order_of(group) and plan.sort_order_of(group).columns for group in plan.groups]
    assert orders == [("a", "b"), None, ("a", "b"), ("v",), ("v",)]
    assert plan.groups[0].extra_metadata == {
        f"{PLAN}.sort.columns": "a,b",
        "hoodie.layout.optimize.strategy": "ZORDER",
    }
    assert plan.groups[3].extra_metadata is None
    assert chosen.sort_columns == ("v", "a", "b")


@pytest.mark.parametrize(
    ("text", "said"),
    [("p=1", "a colon"), (":v", "a pattern"), ("p=(:v", "is no pattern"), ("p=1:v;q", "has 'q'")],
)
def test_orders_of_partitions_that_cannot_be_read_are_refused(text, said):
    with pytest.raises(Invalid, match=said) as error:
        parse_cluster_options(resolve({RULES: text}), TABLE)
    assert error.value.facts["key"] == RULES


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (PartitionChoice(), DAYS),
        (PartitionChoice(selected=("z", "unknown")), ("z",)),
        (PartitionChoice(pattern="2026/01/0[12]"), DAYS[:2]),
        (PartitionChoice(pattern="2026"), ()),
        (PartitionChoice("RECENT_DAYS", lookback=2), DAYS[2:]),
        (PartitionChoice("RECENT_DAYS", lookback=1, skip=1), DAYS[2:3]),
        (PartitionChoice("RECENT_DAYS", lookback=0), DAYS),
        (PartitionChoice("SELECTED_PARTITIONS", begin="2026/01/02"), DAYS[1:]),
        (PartitionChoice("SELECTED_PARTITIONS", begin="2026/01/02", end="2026/01/03"), DAYS[1:3]),
        (PartitionChoice("DAY_ROLLING"), DAYS[1:2]),
    ],
)
def test_partitions_are_chosen_as_hudi_chooses_them(choice, wanted):
    assert chosen_partitions(choice, DAYS, hour=1) == wanted


def test_historic_classes_stand_for_their_partition_filter():
    said = "org.apache.hudi.client.clustering.plan.strategy.SparkRecentDaysClusteringPlanStrategy"
    assert options(**{"class": said}).choice.mode == "RECENT_DAYS"
    assert options(**{"class": "SparkSingleFileSortPlanStrategy"}).is_single_file


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"class": "my.Own"}, Unsupported),
        ({"class": "SparkConsistentBucketClusteringPlanStrategy"}, Unsupported),
        ({"class": "no_such_module:Own"}, Invalid),
        ({"class": "hoodie.spec:SortOrder"}, Invalid),
        ({"class": "ColumnOverlap"}, Invalid),
        ({"file__slices__sort__by": "NAME"}, Invalid),
        ({"partition__regex__pattern": "("}, Invalid),
    ],
)
def test_what_is_not_known_is_refused(said, error):
    with pytest.raises(error):
        options(**said)


def test_selected_partitions_need_a_bound():
    with pytest.raises(Invalid, match="needs partitions"):
        parse_cluster_options(resolve({"hoodie.clustering.plan.partition.filter.mode": "SELECTED_PARTITIONS"}), TABLE)

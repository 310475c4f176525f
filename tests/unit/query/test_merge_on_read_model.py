"""Random tables with log files against a dict: any query, any filter, any order of writes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.query import ReadOptions, load_lookup_plan, load_read_plan, run_read
from hoodie.spec import V6, V8, V9, FormatProfile
from hoodie.testing.hand_logs import HandLogTable, at

GROUP = ("p0", "a")
KEYS = [f"k{n}" for n in range(5)]
WRITES = st.lists(
    st.fixed_dictionaries(
        {
            "rows": st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3), max_size=3),
            "deleted": st.lists(st.sampled_from(KEYS), unique=True, max_size=2),
            "parquet": st.booleans(),
            "compacts": st.booleans(),
        }
    ),
    min_size=1,
    max_size=5,
)
FILTERS = st.sampled_from(
    [
        None,
        "qty > 1",
        "qty = 0 or id = 'k1'",
        "id in ('k0', 'k4')",
        "_hoodie_record_key >= 'k3'",
        "id = 'k2' and qty < 2",
    ]
)
State = dict[str, tuple[int, str]]  # key → quantity, commit time


@settings(max_examples=40, deadline=None)
@given(profile=st.sampled_from([V6, V8, V9]), ordered=st.booleans(), writes=WRITES, sql=FILTERS, cut=st.integers(1, 6))
def test_queries_give_what_a_dict_gives(
    profile: FormatProfile, ordered: bool, writes: list[dict], sql: str | None, cut: int
) -> None:
    ordered = ordered and profile is not V6  # its default payload orders within the log only
    table = HandLogTable(profile, choices={"ordering_fields": ("qty",)} if ordered else {})
    states = written(table, writes, ordered=ordered)
    assert rows_of(table) == states[-1]
    assert rows_of(table, filter=sql) == {key: value for key, value in states[-1].items() if meets(sql, key, value[0])}
    if cut < len(states):
        assert rows_of(table, as_of=at(cut)) == states[cut - 1]
    found = load_lookup_plan(table.storage, table.config, table.timeline(), KEYS[:2], ReadOptions())
    assert read(table, found) == {key: value for key, value in states[-1].items() if key in KEYS[:2]}


def written(table: HandLogTable, writes: list[dict], *, ordered: bool) -> list[State]:
    """The state after each write."""
    state: State = {key: (0, at(1)) for key in KEYS[:2]}
    table.commit(at(1), {GROUP: [row(key, *value) for key, value in state.items()]})
    states = [dict(state)]
    for second, write in enumerate(writes, 2):
        time = at(second)
        if write["compacts"]:
            table.commit(time, {GROUP: [row(key, *value) for key, value in state.items()]}, operation="COMPACT")
        else:
            # A delete without ordering value is forgotten once a row follows it in the log, and the base row may then
            # win against that row. Hudi does so, too; the dict does not.
            deleted = [] if ordered else write["deleted"]
            log = {**write, "deleted": deleted, "rows": [row(key, qty, time) for key, qty in write["rows"].items()]}
            table.delta(time, {GROUP: log})
            for key, qty in write["rows"].items():
                if not ordered or key not in state or qty >= state[key][0]:
                    state[key] = (qty, time)
            for key in deleted:
                state.pop(key, None)
        states.append(dict(state))
    return states


def row(key: str, qty: int, time: str) -> dict[str, object]:
    return {"id": key, "part": "p0", "qty": qty, "_hoodie_commit_time": time}


def rows_of(table: HandLogTable, **options: object) -> State:
    return read(table, load_read_plan(table.storage, table.config, table.timeline(), ReadOptions(**options)))


def read(table: HandLogTable, plan: object) -> State:
    found = run_read(plan, table.storage).read_all()
    keys = found["id"].to_pylist()
    assert len(set(keys)) == len(keys)
    values = zip(found["qty"].to_pylist(), found["_hoodie_commit_time"].to_pylist(), strict=True)
    return dict(zip(keys, values, strict=True))


def meets(sql: str | None, key: str, qty: int) -> bool:
    tests = {
        None: True,
        "qty > 1": qty > 1,
        "qty = 0 or id = 'k1'": qty == 0 or key == "k1",
        "id in ('k0', 'k4')": key in ("k0", "k4"),
        "_hoodie_record_key >= 'k3'": key >= "k3",
        "id = 'k2' and qty < 2": key == "k2" and qty < 2,
    }
    return tests[sql]

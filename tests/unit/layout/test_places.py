"""Places of many files at once are those of each by itself, whatever the names are."""

import random
import uuid

import pytest

from hoodie.layout import Layout, LayoutVersion
from hoodie.layout.places import places_of, plain_paths
from hoodie.layout.strategy import parse_strategy
from hoodie.spec.file_names import file_id_and_instant, parse_data_file_name
from hoodie.spec.typed_values import is_plain_path

PARTITIONS = ("", "p", "day=1", "a/b=2", ".hoodie/metadata/files", ".hoodiex", "é=ü", "p/orders/x", "..", "a//b")
INSTANTS = ("20240105000000000", "2024", "00000000000001", "0", "x", "", "２０２４", "20300101000000000")
EXTENSIONS = ("parquet", "orc", "hfile", "lance", "txt", "parquet.crc", "")
TOKENS = ("1-0-1", "0_1", "", "a-b", "1-2-3.cdc")


class Yearly:
    prefixes = None

    def location(self, partition, file_id):
        return f"of-{len(partition)}"


def layout(*texts, roots=2, limits=("", "a*", "p")):
    versions = [
        LayoutVersion(
            n + 1,
            ("0", "2024", "2029")[n % 3],
            text,
            () if text == "hive" else tuple(range(roots - n % 2)),
            "" if text == "hive" else "orders",
            limits[n % 3] if n else "",
            parse_strategy(text, {"y": Yearly()}),
        )
        for n, text in enumerate(texts)
    ]
    return Layout(tuple(f"memory://r{n}" for n in range(roots)), tuple(versions), "")


def names(count, chance):
    for _ in range(count):
        ids = (str(uuid.UUID(int=chance.getrandbits(128))) + "-0", "0000000k-x", "", ".", "a.b", "é", "00000003")
        file_id, token, instant = chance.choice(ids), chance.choice(TOKENS), chance.choice(INSTANTS)
        yield chance.choice(
            (
                f"{file_id}_1-0-1_20240105000000000.parquet",
                f"{file_id}_{token}_{instant}.{chance.choice(EXTENSIONS)}",
                f"{file_id}_{token}_{instant}_suffix.parquet",
                f".{file_id}_{instant}.log.{chance.choice((1, 12345678901, 'x'))}_{token}",
                f".{file_id}_{instant}.{chance.choice(('log', 'archive', 'logs'))}.1",
                ".hoodie_partition_metadata",
                "notes",
            )
        )


def paths(count=3000, seed=3):
    chance = random.Random(seed)
    return ["/".join(filter(None, (chance.choice(PARTITIONS), name))) for name in names(count, chance)]


CASES = [
    ("bits:8",),
    ("bits:4:hex:id32:file",),
    ("bits:8:id64",),
    ("rfc60",),
    ("fileid:0:2",),
    ("fileid:40:2",),
    ("map",),
    ("own:y",),
    ("bits:2", "bits:4", "map"),
    ("bits:2", "hive", "bits:3"),
]


@pytest.mark.parametrize("texts", CASES, ids=",".join)
@pytest.mark.parametrize("roots", [1, 3])
def test_places_of_many_are_those_of_each(texts, roots):
    made = layout(*texts, roots=roots + 1)
    asked = paths()
    found = places_of(made, asked)
    one_by_one = [made.place(path) for path in asked]
    assert found.roots == [-1 if one is None else one.root for one in one_by_one]
    assert found.keys == [path if one is None else one.key for path, one in zip(asked, one_by_one, strict=True)]
    assert len(set(found.roots)) > 1
    few = places_of(made, asked[:5])
    assert (few.roots, few.keys) == (found.roots[:5], found.keys[:5])
    assert places_of(made, []).keys == []


def test_plain_paths_are_told_apart_at_once_as_one_by_one():
    asked = [*paths(), "a/./b", "./a", "a/..", "/a", "a/", "", "a\0b", "a/...", "..a/b.."]
    assert plain_paths(asked) == [is_plain_path(path) for path in asked]
    assert plain_paths(asked[-9:]) == [is_plain_path(path) for path in asked[-9:]]
    assert len(set(plain_paths(asked))) == 2


def test_file_id_and_instant_are_those_of_the_parsed_name():
    for path in paths():
        name = path.rpartition("/")[2]
        parsed = parse_data_file_name(name)
        assert file_id_and_instant(name) == (None if parsed is None else (parsed.file_id, parsed.instant)), name

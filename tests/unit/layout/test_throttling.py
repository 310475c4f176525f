"""What prefixes are worth on a store that limits requests by prefix: the model of RFC-60's claim, in simulated time."""

import random
import uuid

import pytest

from hoodie.layout import Layout, LayoutVersion
from hoodie.layout.strategy import parse_strategy
from hoodie.testing.throttled_store import ThrottledStore

FILES = 5_000


def keys(bits: int) -> list[str]:
    chance = random.Random(5)
    ids = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(FILES)]
    text = f"bits:{bits}"
    layout = Layout(("s3://b",), (LayoutVersion(1, "0", text, (0,), "t", "", parse_strategy(text, {})),), "")
    places = [layout.place(f"p{n % 8}/{one}-0_0-1-2_20240105000000000.parquet") for n, one in enumerate(ids)]
    return [place.key for place in places if place is not None]


def prefix(key: str) -> str:
    return key.partition("/")[0]


@pytest.mark.parametrize(("bits", "least", "most"), [(4, 2.6, 4.2), (6, 1.55, 1.7), (8, 1.55, 1.7)])
def test_makespan_falls_to_what_the_clients_can_do(bits, least, most):
    done = ThrottledStore(prefix).run(keys(bits))
    assert least <= done.makespan_s <= most
    assert (done.refused == 0) == (bits >= 6)


def test_one_partition_of_the_key_space_is_the_limit_whatever_the_prefixes():
    done = ThrottledStore(lambda key: "").run(keys(8))  # a bucket that the store has not split yet
    assert 49 <= done.makespan_s <= 60
    assert done.given_up > 0
    assert done.makespan_s <= 1.1 * (FILES - 100) / 100 + 5

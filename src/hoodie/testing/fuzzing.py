"""Damaged bytes for the readers of formats, the same ones for the same seed.

A short sample of seeds runs with the other tests; `HOODIE_FUZZ_SECONDS=n` goes on for n seconds, with seeds from the
clock on. `HOODIE_FUZZ_SEED` sets the first seed. A failure names its seed: put it into the test as a case of its own.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

_EDGE_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, (1 << 63) - 1)


def fuzz_seeds(sample: int, first: int = 0) -> Iterator[int]:
    """`sample` fixed seeds from `first` on, or with `HOODIE_FUZZ_SECONDS` new ones, at least as many, until the time is
    over.
    """
    seconds = float(os.environ.get("HOODIE_FUZZ_SECONDS", "0"))
    start = int(os.environ.get("HOODIE_FUZZ_SEED", time.time_ns() if seconds else first))
    end = time.monotonic() + seconds
    for seed in count(start):
        if seed - start >= sample and time.monotonic() >= end:
            return
        yield seed


def fuzz_chances(sample: int) -> Iterator[random.Random]:
    """A source of chance for each of as many seeds."""
    return map(random.Random, fuzz_seeds(sample, first=20261121))


def anywhere(content: bytearray, chance: random.Random) -> int:
    """A position in `content`, or its end."""
    return chance.randrange(len(content) + 1)


def spliced_bytes(
    content: bytes,
    chance: random.Random,
    telling: Sequence[bytes],
    *,
    place: Callable[[bytearray, random.Random], int] = anywhere,
    same_size: bool = False,
) -> bytes:
    """`content` with one to four small changes: pieces that tell a reader something, put over it or into it, and cuts.
    `place` chooses where; with `same_size` nothing moves.
    """
    changed = bytearray(content)
    for _ in range(chance.randrange(1, 5)):
        at = place(changed, chance)
        piece = chance.choice([*telling, chance.randbytes(1), bytes(changed[at : at + 9])])
        match chance.randrange(1 if same_size else 4):
            case 0:
                changed[at : at + len(piece)] = piece[: len(changed) - at]
            case 1:
                changed[at:at] = piece
            case 2:
                del changed[at : at + chance.choice([1, 1, 8, 100])]
            case _:
                del changed[chance.choice([at, len(changed) - 1, len(changed)]) :]
    return bytes(changed)


def damaged_bytes(data: bytes, seed: int) -> bytes:
    """`data` with one to four kinds of damage: bits and bytes changed, numbers put in, pieces cut, moved, repeated."""
    chance = random.Random(seed)
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        _damage(found, chance)
    return bytes(found)


def _damage(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    length = min(len(data) - at, chance.choice((1, 1, 4, 8, 100, 5000)))
    piece = data[at : at + length]
    match chance.randrange(7):
        case 0 if length:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            data[at : at + length] = chance.randbytes(length)
        case 2:
            width = chance.choice((1, 2, 4, 8))
            number = chance.choice(_EDGE_NUMBERS) % (1 << 8 * width)
            data[at : at + width] = number.to_bytes(width, chance.choice(("big", "little")))
        case 3:
            del data[at:]
        case 4:
            del data[at : at + length]
        case 5:
            data[at:at] = piece
        case _:
            to = chance.randrange(len(data) + 1)
            data[to : to + length] = piece

"""Mutations are damage that can be repeated."""

import random

from tests.fuzz.mutations import mutated

FILE = b"a,b\n0.25,0.75\n"


def test_the_same_seed_gives_the_same_damage() -> None:
    assert [mutated(FILE, random.Random(seed)) for seed in range(50)] == [
        mutated(FILE, random.Random(seed)) for seed in range(50)
    ]


def test_most_mutations_change_the_file_and_none_needs_a_full_one() -> None:
    assert sum(mutated(FILE, random.Random(seed)) != FILE for seed in range(100)) > 90
    assert all(isinstance(mutated(b"", random.Random(seed)), bytes) for seed in range(100))

"""Searches of people who do not exist: what many ask for, and what gives one person away.

Everyone searches for everyday things, some far more popular than others. One in three also looks
for something that only they would: their own name, address or laboratory results.
"""

from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa

PEOPLE: Final = 5_000

_THINGS: Final = (
    "weather", "pizza", "dentist", "hotel", "bicycle", "laptop", "sofa", "coffee machine",
    "running shoes", "headphones", "rain jacket", "birthday cake", "guitar", "used car", "phone",
    "train ticket", "yoga class", "swimming pool", "barber", "museum", "sushi", "playground",
    "language course", "piano teacher", "garden chair", "tent", "camera", "bakery", "vet",
    "plumber", "optician", "bookshop", "cinema", "tailor", "car wash", "moving company",
    "bike repair", "dog food", "wedding dress", "winter tyres",
)  # fmt: skip
_FORMS: Final = (
    "{}", "{} near me", "cheap {}", "best {}", "{} review", "{} opening hours", "{} discount",
    "{} for beginners", "{} delivery", "{} open on sunday",
)  # fmt: skip
_TOWNS: Final = (
    "Ashford", "Bremen", "Calais", "Delft", "Exeter", "Freiburg", "Ghent", "Haarlem", "Ipswich",
    "Jena", "Kassel", "Leuven", "Malmo", "Nantes", "Odense", "Porto",
)  # fmt: skip
_FIRST: Final = (
    "Ada", "Ben", "Clara", "David", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Karin",
    "Liam", "Mona", "Nils", "Olga", "Pablo", "Rosa", "Samir", "Tess", "Yusuf",
)  # fmt: skip
_LAST: Final = (
    "Abbott", "Becker", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Hansen", "Ito",
    "Jansen", "Kowalski", "Lindgren", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi",
    "Silva", "Tanaka",
)  # fmt: skip
_STREETS: Final = ("Mill Lane", "Church Street", "Station Road", "Park Avenue", "Harbour View")


def searches(seed: int = 1) -> pa.Table:
    """Return a table of people and what they searched for."""
    rng = np.random.default_rng(seed)
    everyday = np.array(_everyday())
    rng.shuffle(everyday)
    popularity = 1 / (np.arange(len(everyday)) + 10.0)
    sizes = np.minimum(rng.geometric(0.12, PEOPLE), 60)
    people = np.repeat(np.arange(PEOPLE), sizes)
    words = rng.choice(everyday, len(people), p=popularity / popularity.sum())
    tellers = rng.choice(PEOPLE, PEOPLE // 3, replace=False)
    telling = [_telling(rng) for _ in tellers]
    table = pa.table(
        {
            "person": pa.array([f"p{n:04}" for n in (*people, *tellers)]),
            "search": pa.array([*words, *telling], pa.string()),
        }
    )
    return table.take(rng.permutation(table.num_rows))


def _everyday() -> list[str]:
    forms = (*_FORMS, *("{} in " + town for town in _TOWNS))
    return [form.format(thing) for thing, form in product(_THINGS, forms)]


def _telling(rng: np.random.Generator) -> str:
    """Return a search that gives one person away."""
    number = int(rng.integers(10_000, 99_999))
    name = f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"
    house = f"{number % 200 + 1} {rng.choice(_STREETS)}, {rng.choice(_TOWNS)}"
    forms = (
        f"{name} phone number, born {1940 + number % 65}",
        f"{house} house price",
        f"laboratory results patient {number}",
        f"{name} debts {rng.choice(_TOWNS)}",
    )
    return forms[number % len(forms)]

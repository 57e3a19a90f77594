"""Numbers of one shape are printed by one template, as each of them alone would be."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

from qserver.errors import QserverError
from qserver.functions.numbers import number_printing
from qserver.functions.numbers.number_patterns import NumberPattern, pattern_of

WORDS = (
    "9",
    "9",
    "0",
    "0",
    ",",
    "G",
    ".",
    "D",
    "S",
    "MI",
    "PL",
    "SG",
    "PR",
    "L",
    "%",
    '"a%s"',
    " ",
)


def printed_alone(value: int | Decimal, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patched:
        patched.setattr(NumberPattern, "has_templates", False)
        return printed(value, text)


def printed(value: int | Decimal, text: str) -> str:
    if isinstance(value, int):
        return number_printing.print_bigint(value, text)
    return number_printing.print_numeric(value, text)


@pytest.mark.parametrize("seed", range(4))
def test_a_template_prints_what_the_layout_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(seed)
    checked = 0
    for _ in range(300):
        text = "".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 9)))
        text = chance.choice(("", "FM")) + text
        for _ in range(12):
            value: int | Decimal = chance.randrange(-(10 ** chance.randrange(1, 7)), 10**4)
            if chance.random() < 0.5:
                value = Decimal(value).scaleb(-chance.randrange(0, 4))
            try:
                expected = printed_alone(value, text, monkeypatch)
            except QserverError:
                continue
            checked += 1
            assert printed(value, text) == expected, (value, text)
            assert printed(value, text) == expected, (value, text, "from the template")
    assert checked > 1000


def test_templates_are_kept_by_shape() -> None:
    pattern = pattern_of("FM999,990.00")
    pattern.templates.clear()
    found = [number_printing.print_integer(value, "FM999,990.00") for value in (1, 2, 1234, 9876)]
    assert found == ["1.00", "2.00", "1,234.00", "9,876.00"]
    assert len(pattern.templates) == 2

"""Names in stored texts are found and replaced where they are names, and nowhere else."""

from __future__ import annotations

import pytest

from qserver.sql.ddl.names import choose
from qserver.sql.ddl.texts import mentions, renamed_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 0", '"b" > 0'),
        ("A > 0", '"b" > 0'),
        ('"a" > 0', '"b" > 0'),
        ('"A" > 0', '"A" > 0'),
        ("t.a + aa", 't."b" + aa'),
        ("a = 'a' /* a */", "\"b\" = 'a' /* a */"),
        ("a = $$a$$ -- a", '"b" = $$a$$ -- a'),
        ("a(a)", 'a("b")'),
        ("e'\\'a' <> a", "e'\\'a' <> \"b\""),
    ],
)
def test_a_name_is_replaced_where_it_is_a_name(text: str, expected: str) -> None:
    assert renamed_in(text, "a", "b") == expected
    assert mentions(text, "a") == (text != expected)


def test_a_new_name_is_quoted() -> None:
    assert renamed_in("a", "a", 'say "x"') == '"say ""x"""'


def test_a_chosen_name_is_the_first_that_is_free() -> None:
    taken = {"t_a_key", "t_a_key1"}
    assert choose(("t", "a"), "key", taken.__contains__) == "t_a_key2"
    assert choose(("t",), "pkey", taken.__contains__) == "t_pkey"


def test_a_chosen_name_is_cut_to_63_bytes_in_whole_characters() -> None:
    name = choose(("t" * 40, "ä" * 40), "key", lambda name: False)
    assert len(name.encode()) in (62, 63)
    assert name.endswith("ä_key")
    assert choose(("t" * 60, "abc"), "key", lambda name: False) == f"{'t' * 55}_abc_key"

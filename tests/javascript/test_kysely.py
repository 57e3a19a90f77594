"""Kysely over the wire, and over HTTP with kysely-neon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.javascript.installed import installed

PERSON = [
    "person",
    [
        ["id", "int4", False],
        ["name", "varchar", False],
        ["data", "jsonb", True],
        ["made", "timestamptz", True],
    ],
]
FOUND = [
    *(1, [{"name": "Ada", "data": {"k": [1]}}, {"name": "Eve", "data": None}]),
    *("1", "23505", {"n": "2"}),
]


@pytest.mark.nightly
def test_kysely_finds_the_same_over_the_wire_and_over_http(tmp_path: Path) -> None:
    with installed("kysely", tmp_path) as project:
        asked = project.asked()
    assert asked["wire"] == [*FOUND, [PERSON]]
    assert asked["http"] == [*FOUND, [PERSON, ["t", [["n", "int4", True]]]]]
    assert (asked["back"], asked["left"]) == ("back", [])

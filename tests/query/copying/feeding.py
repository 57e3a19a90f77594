"""Rows to be copied, and readers that get them in pieces."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from qserver.pgwire.copy_binary import Tuples
from qserver.query.copying.text import Lines

_texts: Final = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12
)
_special: Final = st.text(st.sampled_from("a\\\t\n\r\"',.;N|"), max_size=8)
CELLS: Final = st.lists(st.tuples(st.none() | _texts | _special, st.none() | _special), max_size=6)


def fed(reader: Lines | Tuples, whole: bytes, data: st.DataObject) -> list[Any]:
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    found: list[Any] = []
    for start, end in zip([0, *places], [*places, len(whole)], strict=True):
        found += reader.feed(whole[start:end])
    return [*found, *reader.feed(b"", last=True)]

"""Server-sent events come out whole, wherever the bytes were cut."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.client import ConnectionLost
from qserver.client.events import Event, EventReader, RowsOfStream
from qserver.client.requests import stream
from qserver.errors import DivisionByZero

SELECT = stream("SELECT a", None, None, {})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def pieces_of(content: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    return [content[a:b] for a, b in itertools.pairwise(places)]


@given(
    st.lists(st.tuples(st.sampled_from(["row", "done", "columns"]), json_values)),
    st.lists(st.integers(0, 500)),
    st.sampled_from(["\n", "\r\n"]),
)
def test_events_do_not_depend_on_how_bytes_arrive(
    events: list[tuple[str, object]], cuts: list[int], newline: str
) -> None:
    text = "".join(
        f": keep-alive\n\nevent: {kind}\nid: 17:1\ndata: {json.dumps(data)}\n\n"
        for kind, data in events
    )
    content = text.replace("\n", newline).encode()
    reader = EventReader()
    found = [event for piece in pieces_of(content, cuts) for event in reader.feed(piece)]
    expected = [Event(kind.encode(), json.dumps(data).encode()) for kind, data in events]
    assert found == expected


def test_a_stream_without_done_is_an_error_not_a_short_result() -> None:
    rows = RowsOfStream(SELECT)
    head = b'event: columns\ndata: {"columns":["a"],"types":["integer"],"version":1}\n\n'
    assert rows.take(head + b'event: row\ndata: {"a":1}\n\nevent: ro') == [(1,)]
    with pytest.raises(ConnectionLost, match="before the result did"):
        rows.take(None)


def test_an_error_in_a_stream_is_raised_as_its_class() -> None:
    rows = RowsOfStream(SELECT)
    data = {"error": {"code": "22012", "name": "division_by_zero", "message": "division by zero"}}
    with pytest.raises(DivisionByZero):
        rows.take(f"event: error\ndata: {json.dumps(data)}\n\n".encode())

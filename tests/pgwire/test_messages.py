"""The codec alone: whatever is sent is cut right, wherever it is cut; nothing else gets through."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.pgwire import messages
from qserver.pgwire.messages import BrokenFrames, Frames, MessageTooLong
from tests.pgwire.wire import bind, describe, execute, frame, parse, query

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
values = st.lists(st.none() | st.binary(max_size=20), max_size=5)
codes = st.lists(st.sampled_from([0, 1]), max_size=3)
oids = st.lists(st.integers(0, 2**32 - 1), max_size=4)


def fed(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    frames, found = Frames(), []
    frames.is_known = True
    for piece in pieces:
        frames.feed(piece)
        while (each := frames.next()) is not None:
            found.append(each)
    assert len(frames) == 0 and frames.rest() == b""
    return found


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.data())
def test_frames_do_not_depend_on_where_they_are_cut(
    bodies: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(frame("d", body) for body in bodies)
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [
        whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)
    ]
    expected = [(messages.COPY_DATA, body) for body in bodies]
    assert fed([each for each in pieces if each]) == expected
    assert fed([whole[at : at + 1] for at in range(len(whole))]) == expected


@given(names, names, oids)
def test_parse_is_read_as_it_was_sent(name: str, sql: str, types: list[int]) -> None:
    asked = messages.read_parse(parse(sql, name, types)[5:])
    assert (asked.name, asked.text, list(asked.oids)) == (name, sql, types)


@given(names, names, codes, values, codes)
def test_bind_is_read_as_it_was_sent(
    portal: str,
    name: str,
    formats: list[int],
    sent: list[bytes | None],
    results: list[int],
) -> None:
    asked = messages.BindReader().read(bind(sent, name, portal, formats, results)[5:])
    assert (asked.portal, asked.statement, asked.values) == (portal, name, sent)
    assert (list(asked.formats), list(asked.result_formats)) == (formats, results)


@given(names, st.integers(0, 2**31 - 1))
def test_the_other_messages_are_read_as_they_were_sent(name: str, most: int) -> None:
    assert messages.read_execute(execute(name, most)[5:]) == (name, most)
    assert messages.read_query(query(name)[5:]) == name
    assert messages.read_named(describe("P", name)[5:]) == messages.Named(True, name)
    assert messages.read_named(describe("S", name)[5:]) == messages.Named(False, name)


@given(st.dictionaries(names.filter(bool), names, max_size=4))
def test_a_startup_is_read_as_it_was_sent(parameters: dict[str, str]) -> None:
    frames = Frames()
    for byte in _startup(parameters):
        frames.feed(bytes([byte]))
    first = frames.next_unnamed()
    assert first is not None
    code, body = first
    assert code == 196608 and messages.read_startup(body) == parameters


def _startup(parameters: dict[str, str]) -> bytes:
    body = b"".join(
        name.encode() + b"\0" + value.encode() + b"\0" for name, value in parameters.items()
    )
    return struct.pack("!ii", len(body) + 9, 196608) + body + b"\0"


READERS = (
    messages.read_parse,
    lambda body: messages.BindReader().read(body),
    messages.read_named,
    messages.read_execute,
    messages.read_query,
    messages.read_startup,
    messages.read_cancel,
    messages.read_initial_response,
)


@given(st.binary(max_size=60))
def test_no_body_raises_anything_but_an_error_of_ours(body: bytes) -> None:
    for read in READERS:
        try:
            read(body)
        except QserverError:
            pass


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_an_error_of_ours(data: bytes) -> None:
    for take in (Frames.next, Frames.next_unnamed):
        frames = Frames()
        frames.feed(data)
        try:
            while take(frames) is not None:
                pass
        except QserverError:
            pass


@given(st.integers(0, 40))
def test_a_body_that_is_cut_off_is_refused(cut: int) -> None:
    body = bind([b"abc", None], "s", "p", [0, 1], [1])[5:]
    if cut < len(body):
        with pytest.raises(QserverError):
            messages.BindReader().read(body[:cut])


@pytest.mark.parametrize(
    "head",
    [
        b"Q\0\0\0\3",  # shorter than itself
        b"Q\xff\xff\xff\xff",
        b"S\0\0\0\5",  # has no body
        b"z\0\0\0\4",  # unknown
    ],
)
def test_lengths_that_make_no_sense_end_it(head: bytes) -> None:
    frames = Frames()
    frames.is_known = True
    frames.feed(head)
    with pytest.raises(BrokenFrames):
        frames.next()


def test_a_length_is_refused_before_its_bytes_come() -> None:
    for is_known, kind, length in ((True, b"Q", 2**30), (False, b"p", 20_000), (True, b"d", 2**21)):
        frames = Frames()
        frames.is_known = is_known
        frames.feed(kind + struct.pack("!i", length))
        with pytest.raises(MessageTooLong):
            frames.next()
    frames = Frames()
    frames.feed(struct.pack("!ii", 2**30, 196608))
    with pytest.raises(BrokenFrames):
        frames.next_unnamed()

"""The protocol as bytes: whole events however they are cut, a clear error for anything else."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.replication.nats.protocol import (
    LINE_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    Delivery,
    Event,
    Info,
    Parser,
    Ping,
    Pong,
    ProtocolError,
    ServerError,
    connect,
    publish,
    subscribe,
)

words = st.text("abcXYZ019_-$.>*", min_size=1, max_size=30)
values = st.text("abcXYZ019 _-", max_size=20).map(str.strip)


@st.composite
def events(draw: st.DrawFn) -> tuple[bytes, Event | None]:
    """What a server sends, and the event that it is."""
    kind = draw(st.sampled_from(["PING", "PONG", "+OK", "-ERR", "INFO", "MSG", "HMSG"]))
    match kind:
        case "PING":
            return b"PING\r\n", Ping()
        case "PONG":
            return b"PONG\r\n", Pong()
        case "+OK":
            return b"+OK\r\n", None
        case "-ERR":
            text = draw(words)
            return f"-ERR '{text}'\r\n".encode(), ServerError(text)
        case "INFO":
            number = draw(st.integers(0, 2**40))
            line = json.dumps({"client_id": number, "connect_urls": ["a:1"], "headers": True})
            return f"INFO {line}\r\n".encode(), Info(client_id=number, headers=True)
    subject = draw(words)
    reply = draw(st.sampled_from(["", " some.reply"]))
    payload = draw(st.binary(max_size=300))
    if kind == "MSG":
        head = f"MSG {subject} 1{reply} {len(payload)}\r\n".encode()
        return head + payload + b"\r\n", Delivery(subject.encode(), payload)
    status, description = draw(st.sampled_from([(0, ""), (503, ""), (404, "Message Not Found")]))
    headers = draw(st.dictionaries(words, values, max_size=3))
    first = "NATS/1.0" + (f" {status}" if status else "") + (f" {description}".rstrip())
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    block = f"{first}\r\n{lines}\r\n".encode()
    sizes = f"{len(block)} {len(block) + len(payload)}"
    head = f"HMSG {subject} 1{reply} {sizes}\r\n".encode()
    return (
        head + block + payload + b"\r\n",
        Delivery(subject.encode(), payload, headers, status, description),
    )


def parsed(parser: Parser, data: bytes) -> list[Event]:
    parser.feed(data)
    found = []
    while (event := parser.next_event()) is not None:
        found.append(event)
    return found


@given(st.lists(events(), max_size=8), st.lists(st.integers(1, 40), min_size=1))
def test_events_are_the_same_however_their_bytes_are_cut(
    sent: list[tuple[bytes, Event | None]], cuts: list[int]
) -> None:
    data = b"".join(each for each, _ in sent)
    expected = [event for _, event in sent if event is not None]
    parser, found, at = Parser(), list[Event](), 0
    for cut in range(len(data)):
        length = cuts[cut % len(cuts)]
        found += parsed(parser, data[at : at + length])
        at += length
    assert found == expected
    assert parsed(Parser(), data) == expected


@given(st.lists(events(), max_size=3), st.binary(min_size=1, max_size=200))
def test_garbage_is_a_clear_error_or_waits_for_its_end(
    sent: list[tuple[bytes, Event | None]], garbage: bytes
) -> None:
    data = b"".join(each for each, _ in sent)
    expected = [event for _, event in sent if event is not None]
    parser = Parser()
    assert parsed(parser, data) == expected
    try:
        more = parsed(parser, garbage)
    except ProtocolError as error:
        assert str(error)
    else:
        assert len(more) <= len(garbage)
    with pytest.raises(ProtocolError):
        parsed(Parser(), garbage.replace(b"\n", b"x") + b"\r\n" * 2)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" PING",
        b"ping",
        b"PINGS",
        b"MSG a 1",
        b"MSG a 1 -1",
        b"MSG a 1 1e3",
        b"MSG a b 1 3",
        b"MSG a 1 b c 3",
        b"MSG  1 3",
        b"HMSG a 1 3",
        b"HMSG a 1 4 3",
        b"INFO",
        b"INFO []",
        b"INFO {",
        b'INFO {"client_id": "x"}',
        b"MSG a 1 %d" % (PAYLOAD_BYTES_MAX + 1),
        b"MSG a 1 99999999999999999999",
        b"HMSG a 1 12 %d" % (PAYLOAD_BYTES_MAX + 1),
        b"-OK",
        b"HTTP/1.1 400 Bad Request",
    ],
)
def test_a_line_that_is_none_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        parsed(Parser(), line + b"\r\n")


@pytest.mark.parametrize(
    "block",
    [
        b"NATS/1.0",
        b"NATS/1.0\r\n",
        b"NATS/2.0\r\n\r\n",
        b"NATS/1.0 5033\r\n\r\n",
        b"NATS/1.0x\r\n\r\n",
        b"NATS/1.0\r\nname\r\n\r\n",
        b"NATS/1.0\r\n: value\r\n\r\n",
        b"\xff" * 12,
    ],
)
def test_headers_that_are_none_are_refused(block: bytes) -> None:
    line = b"HMSG a 1 %d %d\r\n" % (len(block), len(block))
    with pytest.raises(ProtocolError):
        parsed(Parser(), line + block + b"\r\n")


def test_a_payload_of_another_length_is_refused() -> None:
    with pytest.raises(ProtocolError, match="does not end there"):
        parsed(Parser(), b"MSG a 1 3\r\nabcd\r\n")


def test_a_line_without_an_end_is_refused_when_it_is_too_long() -> None:
    parser = Parser()
    assert parsed(parser, b"INFO " + b"x" * (LINE_BYTES_MAX - 5)) == []
    with pytest.raises(ProtocolError, match=f"more than {LINE_BYTES_MAX} bytes"):
        parsed(parser, b"x")


@given(words, st.binary(max_size=300), st.dictionaries(words, words, max_size=3))
def test_a_message_that_is_sent_says_its_lengths(
    subject: str, data: bytes, headers: dict[str, str]
) -> None:
    head, _, rest = publish(subject, "reply.1", data, headers).partition(b"\r\n")
    if not headers:
        assert head == f"PUB {subject} reply.1 {len(data)}".encode()
        assert rest == data + b"\r\n"
        return
    found = re.fullmatch(rb"HPUB (.+) reply\.1 (\d+) (\d+)", head)
    assert found is not None
    assert found[1] == subject.encode()
    length = int(found[2])
    assert rest[length : int(found[3])] == data
    assert rest[int(found[3]) :] == b"\r\n"
    lines = [f"{name}: {value}" for name, value in headers.items()]
    assert rest[:length].decode().split("\r\n") == ["NATS/1.0", *lines, "", ""]


@pytest.mark.parametrize("subject", ["", "a b", "a\r\nPING", "ä"])
def test_a_subject_that_would_end_the_line_is_a_mistake_of_ours(subject: str) -> None:
    with pytest.raises(AssertionError):
        publish(subject, "r", b"")
    with pytest.raises(AssertionError):
        subscribe(subject, 1)


def test_a_token_is_sent_only_if_there_is_one() -> None:
    assert b"secret" in connect("user", "secret", "me")
    for name in (b"user", b"pass", b"auth_token"):
        assert name not in connect("user", "", "me")

"""Draws heads that are sent three times, with other values in some of their places.

Half of them are valid. The others have one thing or more that servers read differently: a header
twice, a value in two lines, a line that ends with LF, a space in front of a colon, two lengths.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from qserver.http1.head import END_OF_HEAD

PLACE: Final = b"<>"
"""Where each request has a value of its own."""

METHODS: Final = (b"POST", b"POST", b"GET", b"DELETE"), (b"PUT", b"OPTIONS", b"post", b"A B")
TARGETS: Final = (
    (
        *(b"/v1/query", b"/query", b"/v1/transaction", b"/v1/tables/t/rows", b"/v1/databases"),
        *(b"/v1/transaction/txn_<>", b"/v1/transaction/txn_<>/commit"),
    ),
    (
        *(b"/v1/transaction/txn%5F<>", b"/v1/transaction/<>", b"/v1/transaction/txn_<>/end"),
        *(b"/v1/transaction/txn_<>?a=<>", b"http://a/v1/transaction/txn_<>", b"/v1/keys/<>", b"*"),
        *(b"/v1/query?sql=<>", b"/v1/transaction/txn_<>/commit/", b"/v1/transaction/txn_<>%41"),
    ),
)
VERSIONS: Final = (b"HTTP/1.1",), (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.1 ")
NAMES: Final = (b"Idempotency-Key", b"X-Transaction", b"X-Request-Id"), (b"X-REQUEST-id", b"a", b"")
COLONS: Final = (b": ", b":"), (b":\t ", b" : ", b"")
AFTER: Final = (b"",), (b" ", b"\t", b"\r\n <>", b" <>", b"\r\nX-Request-Id: <>")
ENDS: Final = (b"\r\n",), (b"\r\n", b"\n", b"\r", b"\r\n ")
LINES: Final = (
    *(b"Host: b", b"Host: <>", b"Content-Length: 5", b"Content-Length: <>", b"Expect: <>"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: <>", b"Connection: close", b"A: <>"),
    *(b"Authorization: Bearer k", b"Accept: text/csv", b"Accept-Encoding: gzip", b"X-Database: d"),
    *(b"Origin: <>", b"Content-Type: application/json", b"no colon", b": no name", b"Upgrade: <>"),
    *(b"X-X-Request-Id: <>", b"A: X-Request-Id: <>", b"Connection: x-request-id", b"X-Request-Id"),
)
ODD_VALUES: Final = (
    *(b"", b" ", b"\t", b"*", b"a\tb", b"a b", b" a ", b"\xe4", b"a\x00b", b"a\x7f", b"a:b", b"<>"),
    *(b"k" * 253, b"k" * 255, b"k" * 256, b"k" * 2000, b"5", b"chunked", b"a\rb", b"a\nb"),
    *(b"a\r\n b", b"a\r\n\tX-Request-Id: b", b"a\r\nX-Request-Id: b", b"a HTTP/1.1\r\nB: "),
    *(b"a\nIdempotency-Key: b", b"a\r\nContent-Length: 7", b"a\r\n\r\n", b"/commit"),
)


def mostly(usual: Any, odd: Any) -> st.SearchStrategy[bytes]:
    """One of the usual, and of the odd in one of twelve."""
    return st.integers(0, 11).flatmap(lambda drawn: st.sampled_from(odd if drawn == 7 else usual))


values = mostly([b"%d" % number for number in range(9)] + [b"a", b"a_b", b"c1"], ODD_VALUES)
varying_lines = st.tuples(mostly(*NAMES), mostly(*COLONS), st.just(PLACE), mostly(*AFTER))
lines_of_heads = st.one_of(varying_lines.map(b"".join), mostly([b"A: b", b"B: <>"], LINES))


@st.composite
def three_heads(draw: st.DrawFn) -> list[bytes]:
    """The bytes of three requests, each to the end of its head."""
    start = [draw(mostly(*each)) for each in (METHODS, TARGETS, VERSIONS)]
    lines = draw(st.lists(lines_of_heads, max_size=4))
    lines.insert(draw(st.integers(0, len(lines))), b"Host: a")
    shape = b" ".join(start) + b"\r\n" + b"".join([line + draw(mostly(*ENDS)) for line in lines])
    first, *texts = shape.split(PLACE)
    heads = []
    for _ in range(3):
        raw = first + b"".join([draw(values) + text for text in texts]) + END_OF_HEAD
        heads.append(raw[: raw.index(END_OF_HEAD) + len(END_OF_HEAD)])
    return heads

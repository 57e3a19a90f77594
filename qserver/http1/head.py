"""Parses the head of a request into a checked `Head`, or raises a `Refusal` with the reason.

    GET /v1/query?x=1 HTTP/1.1 CRLF      request line: checked here, strictly
    Host: a CRLF                         headers: split by llhttp, checked here
    ...
    CRLF

Parsing is a pure function of the bytes, so a repeated head (the common case) is parsed once
(`heads`). `Cutter` lets that be so for heads with a value that is another in each request.

Two readers of one request must never disagree about its end: an attacker could make a proxy pass on
a second, hidden request. So a head that any other server reads differently is refused, not
repaired. llhttp is strict about header lines; llhttp accepts the following, and this module does
not:

- several spaces in the request line, no version (HTTP/0.9), versions 0.9 and 2.0, ICE and RTSP,
  fragments in a target, `*` for any method
- `Transfer-Encoding: gzip, chunked`, and in HTTP/1.0
- more than one Host, none, or an invalid one; spaces at the end of a value (cut off)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

import httptools
import msgspec

from qserver.http1.application import ONLY_ID, PATH, Request, Values, Varying, request_id_of
from qserver.http1.headers import TOKEN
from qserver.http1.options import ServerOptions
from qserver.http1.refusal import Refusal

END_OF_HEAD = b"\r\n\r\n"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
METHOD_START = re.compile(TOKEN + rb"(?: |\Z)")
ABSOLUTE_TARGET = re.compile(rb"(?i:https?)://([^/?]*)([/?].*)?")
HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
PORT_MAX = 65_535
# The bytes allowed in a head: visible characters, obs-text, space, tab, CR and LF.
ALLOWED = bytes([9, 10, 13, *range(32, 127), *range(128, 256)])
PLAIN_HTTP_HINT = "This port speaks plain HTTP/1.1: use an address that begins with http://."


class Head(msgspec.Struct, frozen=True, gc=False):
    """The checked head of a request. The application gets `request`."""

    request: Request
    is_head: bool
    """The method is HEAD: the answer has no body."""
    modern: bool
    """HTTP/1.1, so the client understands chunks and 100 Continue."""
    keep_alive: bool
    length: int | None
    """Bytes of the body; None if it comes in chunks, or is too large."""
    too_large: bool
    """The length exceeds the limit. The application sees the request before it is refused."""
    body_bytes_max: int
    expects_continue: bool
    path: bytes
    """As it was sent."""
    values: Values
    """What varies, of this request."""

    @property
    def request_id(self) -> str | None:
        """The client's own, if it is safe to repeat."""
        return request_id_of(self.values)

    @property
    def logged(self) -> str:
        """Method and path, for the access log: no query string."""
        return f"{self.request.method} {self.values.get(PATH, self.path).decode()}"


class Cutter:
    """Cuts values that vary out of a head, so that heads which differ in them become the same.

        cut(raw) = bytes, values    parse_head(raw) = parse_head(bytes), with these values

    That holds because what is cut out is printable ASCII inside one line, between the name of a
    header that means nothing here (or the fixed parts of a path) and the line's end: all lines
    begin and end as before. The parser reads what is left, and also says which values there are. If
    it does not name one that was cut (a header is there twice), the whole head is parsed.
    """

    def __init__(self, varying: Varying) -> None:
        assert not MEANINGFUL & {*varying.headers}, "the server itself reads these"
        names = b"|".join(map(re.escape, varying.headers))
        value = rb"([!-~](?:[ -~]{0,253}[!-~])?)(?=[ \t]*\r\n[^ \t])"
        self._header = re.compile(rb"(\r\n(?i:(%b)):[ \t]*)" % names + value)
        self._path = re.compile(rb"[A-Z]+ (%b)(?= HTTP/)" % varying.path)

    def cut(self, raw: bytes) -> tuple[bytes, dict[bytes, bytes]]:
        parts = self._header.split(raw)  # text, then start, name, value, text for each header
        values = dict(zip(map(bytes.lower, parts[2::4]), parts[3::4], strict=True))
        del parts[3::4], parts[2::3]
        raw = b"".join(parts)
        line = self._path.match(raw)
        if line is not None:
            values[PATH] = line[1]
            raw = raw[: line.start(2)] + raw[line.end(2) :]
        return raw, values


class _Fields:
    """Collects the headers that llhttp passes to its callback."""

    __slots__ = ("headers",)

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip(b" \t")))


def parse_head(raw: bytes, options: ServerOptions, varying: Varying = ONLY_ID) -> Head:
    """Check a whole head, from the request line to the empty line."""
    line_end = raw.index(b"\r\n")
    method, target, modern = _request_line(raw[:line_end], options)
    if len(raw) - line_end > options.headers_bytes_max:
        raise Refusal(431, f"the headers are larger than {options.headers_bytes_max} bytes")
    check_characters(raw)
    headers = _headers(raw, options)
    named = named_headers(headers)
    authority, path, query = _target(method, target)
    _check_host(named.get(b"host"), modern)
    if authority is not None:  # an absolute target overrides the header
        headers = [(b"host", authority), *(each for each in headers if each[0] != b"host")]
    length = body_length(named, modern)
    too_large = length is not None and length > options.body_bytes_max
    scheme = "http" if options.certificate is None else "https"
    request = Request(method.decode(), _decoded(path), query, tuple(headers), scheme)
    return Head(
        request=request,
        is_head=method == b"HEAD",
        modern=modern,
        keep_alive=_keep_alive(named.get(b"connection", b""), modern),
        length=None if too_large else length,
        too_large=too_large,
        body_bytes_max=options.body_bytes_max,
        expects_continue=_expects_continue(named.get(b"expect"), modern),
        path=path,
        values=varying.values(path, headers),
    )


ONLY_ONCE = frozenset({b"host", b"content-length", b"transfer-encoding", b"expect"})
MEANINGFUL = ONLY_ONCE | {b"connection", b"upgrade"}


def named_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers by name, those with one name as one list; refuse what may be there only once."""
    named: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in named and name in ONLY_ONCE:
            raise Refusal(400, f"the header {name.decode()} is there more than once")
        named[name] = value if name not in named else named[name] + b", " + value
    return named


def head_of(data: bytes) -> bytes:
    """The head that a request begins with, which is there."""
    return data[: data.index(END_OF_HEAD) + len(END_OF_HEAD)]


def check_beginning(beginning: bytes, options: ServerOptions) -> None:
    """Refuse an incomplete head that can no longer become valid.

    Otherwise a client that speaks TLS, or ends its lines with LF alone, would wait for the timeout.
    """
    line_end = beginning.find(b"\r\n")
    if line_end >= 0:
        _request_line(beginning[:line_end], options)
        if len(beginning) - line_end > options.headers_bytes_max:
            raise Refusal(431, f"the headers are larger than {options.headers_bytes_max} bytes")
    elif METHOD_START.match(beginning) is None and beginning != b"\r":
        raise Refusal(400, "this is not an HTTP request", PLAIN_HTTP_HINT)
    elif len(beginning) > options.line_bytes_max:
        raise _line_too_long(options)
    check_characters(beginning)


def check_characters(raw: bytes) -> None:
    """Refuse control characters, and lines that do not end with CR LF."""
    if raw.translate(None, ALLOWED):
        raise Refusal(400, "there is a control character in the head of the request")
    line_ends = raw.count(b"\r\n")
    if raw.count(b"\n") != line_ends or raw.count(b"\r", 0, -1) > line_ends:
        raise Refusal(400, "a line of the head does not end with CR LF")


def _request_line(line: bytes, options: ServerOptions) -> tuple[bytes, bytes, bool]:
    """Method, target, and whether it is HTTP/1.1."""
    if len(line) > options.line_bytes_max:
        raise _line_too_long(options)
    match = REQUEST_LINE.fullmatch(line)
    if match is None:
        raise Refusal(400, "the first line is not of the form METHOD /path HTTP/1.1")
    method, target, major, minor = match.groups()
    if major != b"1" or minor not in (b"0", b"1"):
        version = f"{major.decode()}.{minor.decode()}"
        raise Refusal(505, f"HTTP/{version} is not spoken here, HTTP/1.1 is")
    return method, target, minor == b"1"


def _line_too_long(options: ServerOptions) -> Refusal:
    return Refusal(
        414,
        f"the first line of the request is longer than {options.line_bytes_max} bytes",
        "Send what is long in the body.",
    )


def _headers(raw: bytes, options: ServerOptions) -> list[tuple[bytes, bytes]]:
    fields = _Fields()
    parser = httptools.HttpRequestParser(fields)
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # the request is answered as if it had no Upgrade header
    except httptools.HttpParserInvalidMethodError:
        raise Refusal(501, "this method is not known here") from None
    except httptools.HttpParserError as error:
        if "Content-Length overflow" in str(error):
            raise body_too_large(options.body_bytes_max) from None
        raise Refusal(400, f"the request is malformed: {error}") from None
    if len(fields.headers) > options.headers_count_max:
        raise Refusal(431, f"there are more than {options.headers_count_max} headers")
    return fields.headers


def _target(method: bytes, target: bytes) -> tuple[bytes | None, bytes, bytes]:
    """Authority (only of an absolute target), path and query string."""
    authority = None
    if method == b"CONNECT":
        raise Refusal(501, "this server is no proxy: CONNECT is not known here")
    if b"#" in target:
        raise Refusal(400, "the target of the request has a fragment")
    if target[:1] != b"/":
        absolute = ABSOLUTE_TARGET.fullmatch(target)
        if absolute is not None:
            authority, rest = absolute.groups()
            _check_host(authority, modern=True)
            target = rest if rest and rest[:1] == b"/" else b"/" + (rest or b"")
        elif not (target == b"*" and method == b"OPTIONS"):
            raise Refusal(400, "the target of the request does not begin with /")
    path, _, query = target.partition(b"?")
    return authority, path, query


def _decoded(path: bytes) -> str:
    if b"%" not in path:
        return path.decode("ascii")
    try:
        text = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(400, "the path is not UTF-8 behind its percent signs") from None
    if "\0" in text:
        raise Refusal(400, "there is a NUL character in the path")
    return text


def _check_host(host: bytes | None, modern: bool) -> None:
    if host is None:
        if modern:
            raise Refusal(400, "the header Host is missing, which HTTP/1.1 demands")
        return
    match = HOST.fullmatch(host)
    if match is None or int(match[1] or 0) > PORT_MAX:
        raise Refusal(400, "the header Host is not a host with an optional port")


def _keep_alive(connection: bytes, modern: bool) -> bool:
    options = [word.strip() for word in connection.lower().split(b",")]
    return b"close" not in options and (modern or b"keep-alive" in options)


def body_length(named: dict[bytes, bytes], modern: bool) -> int | None:
    """The bytes of the body, None for chunks; refuse a head that says both."""
    coding = named.get(b"transfer-encoding")
    length = named.get(b"content-length")
    if coding is not None:
        if length is not None or not modern:
            raise Refusal(400, "Transfer-Encoding does not go with Content-Length or HTTP/1.0")
        if coding.lower() != b"chunked":
            raise Refusal(501, "the only Transfer-Encoding known here is chunked")
        return None
    if length is None:
        return 0
    if not length.isdigit():
        raise Refusal(400, "Content-Length is not a number")
    return int(length)


def body_too_large(most: int) -> Refusal:
    return Refusal(413, f"the body is larger than {most} bytes")


def _expects_continue(expectation: bytes | None, modern: bool) -> bool:
    if expectation is None:
        return False
    if expectation.lower() != b"100-continue":
        raise Refusal(417, "the only expectation known here is 100-continue")
    return modern

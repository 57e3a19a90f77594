"""The files of the console as they are sent: each read once, compressed once, with its tag.

    /console                        the page, which names a build: always asked for again
    /console/{build}/{file}         a file of that build: kept by browsers for a year
    /console/{build}/{folder}/{file}

The build is the digest of all files. Modules import each other by relative paths, so a page loads
all of them from one build, and a new release is a new address. A server that has another build (one
of several nodes, during an upgrade) sends what it has, and the browser does not keep it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

PAGE: Final = "index.html"
BUILD_MARK: Final = b"{build}"
DATA_MARK: Final = b"{data_url}"
CONTROL_MARK: Final = b"{control_url}"
"""What the page has in place of these."""
TAG_LENGTH: Final = 32
GZIP: Final = 16 + zlib.MAX_WBITS
MEDIA: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
"""What is sent; a file of another kind is not there."""


@dataclass(frozen=True, slots=True)
class ConsoleFile:
    content: bytes
    compressed: bytes
    """With gzip."""
    media: str
    tag: bytes
    """A weak one: it stands for both forms."""


@lru_cache(maxsize=8)
def page_file(data_url: str, control_url: str) -> ConsoleFile:
    """The page. Its addresses name the build; the URLs are where it sends requests, "" for here."""
    content = _all()[PAGE].content
    for mark, value in ((BUILD_MARK, build()), (DATA_MARK, data_url), (CONTROL_MARK, control_url)):
        assert mark in content, f"the page has no {mark.decode()}"
        content = content.replace(mark, escape(value).encode())
    return _file(content, MEDIA["html"])


def console_file(name: str) -> ConsoleFile | None:
    """A file by its path below `static/`, but for the page; None if there is none. Only names of
    `_all` are found, so no path leads out of the folder.
    """
    return None if name == PAGE else _all().get(name)


@cache
def build() -> str:
    digest = sha256()
    for name, content in sorted(_contents()):
        digest.update(b"%s %d\n" % (name.encode(), len(content)))
        digest.update(content)
    return digest.hexdigest()[:16]


def security_policy(origins: Iterable[str], own: str = "'self'") -> str:
    """What a page may do: run scripts and styles of its own, and send to this server and to these
    origins. Its own are the files of this server, or what has one of the digests in `own`.

    No inline script and no inline style, no frame around it and none in it, no form that a browser
    would send by itself. With trusted types, a string can not become HTML by mistake either: the
    browser refuses every `innerHTML`.
    """
    connect = " ".join(["'self'", *origins])
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {own}",
            f"style-src {own}",
            "img-src 'self'",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


@cache
def _all() -> dict[str, ConsoleFile]:
    """Every file, by its path. A few hundred kilobytes, compressed when the first is asked for."""
    found = {}
    for name, content in _contents():
        media = MEDIA.get(name.rpartition(".")[2])
        if media is not None:
            found[name] = _file(content, media)
    return found


def _file(content: bytes, media: str) -> ConsoleFile:
    compressor = zlib.compressobj(9, zlib.DEFLATED, GZIP)
    compressed = compressor.compress(content) + compressor.flush()
    tag = b'W/"%s"' % sha256(content).hexdigest()[:TAG_LENGTH].encode()
    return ConsoleFile(content, compressed, media, tag)


def _contents() -> list[tuple[str, bytes]]:
    """The files of `static/` and of the folders in it."""
    top = files("qserver.console") / "static"
    return [*_files_in(top, ""), *(pair for each in _folders(top) for pair in _files_in(*each))]


def _folders(top: Traversable) -> list[tuple[Traversable, str]]:
    return [(each, f"{each.name}/") for each in top.iterdir() if each.is_dir()]


def _files_in(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    return [(prefix + each.name, each.read_bytes()) for each in folder.iterdir() if each.is_file()]

"""Looks at a server that runs, as its clients see it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from qserver import __version__
from qserver.cli.doctor.exposure import is_local
from qserver.cli.doctor.finding import Finding, ok, problem, warning

SECONDS: Final = 10.0
CLOCK_SECONDS_APART: Final = 5.0
FILES_SHARE_MOST: Final = 0.8
_SAMPLE: Final = re.compile(r"^([a-z_]+)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


class Asked:
    """What a server has answered."""

    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Mapping[str, Any]:
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, Mapping) else {}


def look_at_server(url: str, key: str | None) -> Iterator[Finding]:
    try:
        health = _ask(url, "/health", None)
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        change = "Start it, or name it: --url. Its log says why it does not start."
        yield problem("server", f"{url} does not answer: {reason}", change)
        return
    yield _health(url, health)
    yield _version(health)
    yield _clock(health)
    yield _transport(url)
    if key is None:
        change = "Give a key with the scope admin: --key-file."
        yield warning("metrics", "without a key there are no metrics to look at", change)
        return
    yield from _metrics(_ask(url, "/metrics", key))


def _ask(url: str, path: str, key: str | None) -> Asked:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    asked = Request(url.rstrip("/") + path, headers=headers)
    try:
        with urlopen(asked, timeout=SECONDS) as answer:
            return Asked(answer.status, answer.headers, answer.read())
    except HTTPError as error:
        with error:
            return Asked(error.code, error.headers, error.read())


def _health(url: str, found: Asked) -> Finding:
    checks = found.json.get("checks", {})
    bad = [f"{name}: {state}" for name, state in checks.items() if state != "ok"]
    if found.status == 200 and not bad:
        return ok("server", f"{url} is well")
    text = "; ".join(bad) or f"GET /health answers {found.status}"
    return problem("server", f"{url} is not well: {text}", "Look at its log.")


def _version(found: Asked) -> Finding:
    theirs = found.json.get("version")
    if theirs == __version__:
        return ok("version", f"the server is qserver {theirs}, as this command")
    text = f"the server is qserver {theirs}, this command {__version__}"
    return warning("version", text, "Update the older one.")


def _clock(found: Asked) -> Finding:
    try:
        theirs = parsedate_to_datetime(found.headers["date"])
    except (TypeError, ValueError):
        return warning("clocks", "the server does not tell its time", "Is there a proxy?")
    apart = abs(int(time.time()) - theirs.timestamp())  # the header has whole seconds
    text = f"the clocks of the server and of this machine are {apart:.0f} s apart"
    if apart > CLOCK_SECONDS_APART:
        return warning("clocks", text, "Set both by NTP.")
    return ok("clocks", text)


def _transport(url: str) -> Finding:
    parts = urlsplit(url)
    if parts.scheme == "https" or is_local(parts.hostname or ""):
        way = "https" if parts.scheme == "https" else "this machine"
        return ok("transport", f"{url} is {way}")
    change = "Use https: a certificate of the server's own, or a proxy with one."
    return problem("transport", f"{url} sends keys and rows as they are", change)


def _metrics(found: Asked) -> Iterator[Finding]:
    if found.status == 401:
        change = "Is it that of another server, or revoked? Give one of this server: --key-file."
        yield problem("key", "the server does not know the key", change)
        return
    if found.status != 200:
        text = f"GET /metrics answers {found.status}"
        yield warning("metrics", text, "Give a key of `default` with the scope admin.")
        return
    samples: dict[str, float] = {}
    for name, value in _SAMPLE.findall(found.body.decode("utf-8", "replace")):
        samples[name] = max(samples.get(name, 0.0), float(value))
    for name, what in (
        ("qserver_restarts_total", "restarts of an engine"),
        ("qserver_internal_errors_total", "requests that met a bug"),
        ("qserver_loop_stalls_total", "stalls of the event loop"),
    ):
        if samples.get(name):
            text = f"{samples[name]:.0f} {what} since the start"
            yield warning(what, text, "The server's log says when, and why.")
    most, used = samples.get("process_max_fds", 0.0), samples.get("process_open_fds", 0.0)
    if most and used / most > FILES_SHARE_MOST:
        text = f"the server has opened {used:.0f} of {most:.0f} files"
        yield warning("open files", text, "Raise the limit: LimitNOFILE= of systemd, ulimit -n.")
    yield ok("metrics", f"GET /metrics has {len(samples)} numbers")

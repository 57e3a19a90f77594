"""Reads the values of settings: a function returns one, or raises ValueError that says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from qserver import limits

_LOG: Final = re.compile(r"(nats|tls)://[^\s,/]+(,[^\s,/]+)*")
_NODE: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")


def text_of(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


def memory_size(text: str) -> int | None:
    if not text:
        return None
    number, unit = text.strip().upper().rstrip("B"), 1
    for at, letter in enumerate("KMG", start=1):
        if number.endswith(letter):
            number, unit = number[:-1], 1024**at
    if not number.isdecimal():
        raise ValueError("it is a number of bytes, or one with KB, MB or GB behind it")
    if int(number) * unit < limits.CACHE_BYTES_MIN:
        raise ValueError(f"it is at least {limits.CACHE_BYTES_MIN >> 20}MB")
    return int(number) * unit


def log_nodes(text: str) -> str | None:
    if not text:
        return None
    if not _LOG.fullmatch(text):
        raise ValueError("it names no nodes, such as nats://host:4222,host:4222")
    return text


def log_copies(text: str) -> int:
    if text not in ("1", "3", "5"):
        raise ValueError("it is neither 1 nor 3 nor 5")
    return int(text)


def node_name(text: str) -> str | None:
    if text and not _NODE.fullmatch(text):
        raise ValueError("a name has letters, digits, - and _, at most 60")
    return text or None


def link_address(text: str) -> str | None:
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise ValueError("it is not host:port, such as 10.0.0.1:7420")
    return text


def cluster_key(text: str) -> str | None:
    if text and len(text) < 16:
        raise ValueError("it has fewer than 16 characters")
    return text or None


def lease_seconds(text: str) -> float:
    seconds = some_seconds(text)
    if not 2 <= seconds <= 120:
        raise ValueError("it is not from 2 to 120 seconds")
    return seconds


def milliseconds_or_none(text: str) -> float | None:
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 86_400_000:
        raise ValueError("it is not a number of milliseconds, up to a day")
    return found


def optional(text: str) -> str | None:
    return text or None


def api_key(text: str) -> str | None:
    if not text:
        return None
    rest = text.removeprefix("svc_k_")
    if rest == text or len(rest) < 16 or not rest.replace("-", "").replace("_", "").isalnum():
        raise ValueError("a key is svc_k_ and then at least 16 letters, digits, - or _")
    return text


def host_url(text: str) -> str | None:
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not a URL such as https://data.example.com")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("a URL of a host has no path")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def web_address_or_none(text: str) -> str | None:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValueError("it is not a URL such as http://localhost:4318/v1/traces")
    return text or None


def switch(text: str) -> bool:
    answers = {"1": True, "true": True, "yes": True, "on": True}
    answers |= {"0": False, "false": False, "no": False, "off": False}
    if text.lower() not in answers:
        raise ValueError("it is neither 1 nor 0")
    return answers[text.lower()]


def origins(text: str) -> tuple[str, ...]:
    origins = tuple(each.strip() for each in text.split(",") if each.strip())
    for origin in origins:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise ValueError(f"{origin!r} is not an origin such as https://app.example.com")
    return origins


def one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"it is none of {', '.join(words)}")
        return text

    return parse


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ValueError(f"it is not a whole number from {least} to {most}")
        return int(text)

    return parse


def port_or_none(text: str) -> int | None:
    return None if text == "" else whole(0, 65_535)(text)


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def history_seconds(text: str) -> float:
    """A length of history in seconds; ValueError says what is wrong."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 12):
        raise ValueError("it is a number of seconds, or one with m, h or d behind it, such as 24h")
    if int(number) * unit > limits.HISTORY_SECONDS_MAX:
        raise ValueError(f"it is at most {limits.HISTORY_SECONDS_MAX / 86_400:.0f}d")
    return float(int(number) * unit)


def kept_seconds(text: str) -> float:
    """How long something is kept, in seconds; ValueError says what is wrong."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 99_999_999):
        raise ValueError("it is a number of seconds, or one with m, h or d behind it, such as 30d")
    return float(int(number) * unit)


def some_seconds(text: str) -> float:
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise ValueError(
            "it is not a number of seconds, or one with m or h, more than 0 and at most 86400"
        )
    return seconds


def seconds_or_none(text: str) -> float | None:
    return some_seconds(text) if text else None


def seconds_or_never(text: str) -> float | None:
    return None if text == "0" else some_seconds(text)

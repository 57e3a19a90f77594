"""Declares the routes of the console: its page, and the files that the page loads."""

from __future__ import annotations

from typing import Final

from qserver.web.route import Plane, Route

DEFENCE: Final = (
    *("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"),
    *("Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Permissions-Policy"),
)


def _route(path: str, purpose: str, media: str, errors: tuple[int, ...]) -> Route:
    return Route(
        "GET",
        path,
        purpose,
        Plane.BOTH,
        str,
        anonymous=True,
        media=media,
        has_tag=True,
        headers=DEFENCE,
        errors=errors,
    )


CONSOLE_ROUTES: Final = (
    _route("/console", "the console: a page for people", "text/html", (404,)),
    _route("/console/{build}/{file}", "a file of the console", "text/javascript", (404,)),
    _route("/console/{build}/{folder}/{file}", "a file of the console", "text/javascript", (404,)),
)

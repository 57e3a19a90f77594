"""Declares the routes of the JavaScript client's files, which lie in `qserver/javascript/`."""

from __future__ import annotations

from typing import Final

from qserver.web.route import Plane, Route

_MEDIA: Final = {"js": "text/javascript", "ts": "text/typescript"}

CLIENT_FILES: Final = tuple(
    Route(
        "GET",
        path,
        purpose,
        Plane.BOTH,
        str,
        anonymous=True,
        media=_MEDIA[path.rpartition(".")[2]],
        has_tag=True,
        headers=("X-Qserver-Version",),
        is_file=True,
    )
    for path, purpose in (
        ("/client.js", "the JavaScript client"),
        ("/client.d.ts", "the types of the JavaScript client"),
        ("/react.js", "its hook for React"),
    )
)

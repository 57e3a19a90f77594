"""The field `settings` of a request: the session that its statements run in."""

from __future__ import annotations

from collections.abc import Mapping

from qserver.query.session import Session


def session_given(
    settings: Mapping[str, str | int | float | bool] | None, *, lasts: bool = False
) -> Session | None:
    """Return a session with the settings; None if the request has none.

    `lasts`: it goes on after this request.
    """
    if settings is None:
        return None
    return Session({name: _text(value) for name, value in settings.items()}, lasts=lasts)


def _text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)

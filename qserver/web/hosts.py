"""Decides which plane a request's host serves.

data       queries                     control routes: 404 that names the control URL
alias      queries, by one more hop    control routes: 307 to the control URL
control    sessions, databases, keys   data routes: 404 that names the data URL
any        everything: no URLs are set, or the Host is none of them (an address, a probe)
"""

from __future__ import annotations

from enum import Enum
from urllib.parse import urlsplit

from qserver.errors import NotFound, QserverError, WrongHost
from qserver.web.route import Plane, Route

VIA = (b"via", b"1.1 qserver-alias")


class Place(Enum):
    ANY = "any"
    DATA = "data"
    ALIAS = "alias"
    CONTROL = "control"


class Hosts:
    def __init__(
        self, data_url: str | None, alias_url: str | None, control_url: str | None
    ) -> None:
        self.data_url = data_url
        self.control_url = control_url or data_url
        self._places: dict[bytes, Place] = {}
        if control_url is not None and control_url != data_url:
            self._add(control_url, Place.CONTROL)
        if alias_url is not None:
            self._add(alias_url, Place.ALIAS)
        if data_url is not None and control_url not in (None, data_url):
            self._add(data_url, Place.DATA)

    def _add(self, url: str, place: Place) -> None:
        parts = urlsplit(url)
        self._places[parts.netloc.encode()] = place
        default = 443 if parts.scheme == "https" else 80
        if parts.port is None:
            self._places[f"{parts.netloc}:{default}".encode()] = place
        elif parts.port == default:
            self._places[(parts.hostname or "").encode()] = place

    def place_of(self, host: bytes) -> Place:
        if not self._places:
            return Place.ANY
        return self._places.get(host.lower(), Place.ANY)

    def refusal(self, place: Place, route: Route, target: str) -> QserverError | None:
        """The error if this place does not serve the route; None if it does."""
        if place is Place.ALIAS and route.plane is Plane.CONTROL:
            return WrongHost(
                f"{route.path} is served by {self.control_url}",
                hint="Call that host directly: the alias serves queries only.",
                location=f"{self.control_url}{target}",
            )
        if place is Place.DATA and route.plane is Plane.CONTROL:
            return self._elsewhere(route, self.control_url)
        if place is Place.CONTROL and route.plane is Plane.DATA:
            return self._elsewhere(route, self.data_url)
        return None

    def _elsewhere(self, route: Route, url: str | None) -> NotFound:
        where = f"{url}{route.path}" if url else "the data host"
        return NotFound(
            f"{route.path} is not served by this host", hint=f"Send the request to {where}."
        )

"""Routes that describe the service: the banner, OpenAPI, the pages for people and for programs."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any

from qserver import __version__
from qserver.console import security_policy
from qserver.web.admission import Admission
from qserver.web.console import DEFENCE
from qserver.web.description import shapes
from qserver.web.description.catalogue import ROUTES
from qserver.web.description.openapi import describe
from qserver.web.service.service import Service


class DescriptionRoutes:
    def __init__(self, service: Service) -> None:
        self._settings = service.settings
        self._page = (files("qserver.web.description") / "docs.html").read_bytes()
        self._defence = [(b"content-security-policy", _policy_of(self._page)), *DEFENCE]

    @cached_property
    def _openapi(self) -> dict[str, Any]:
        """Made for the first caller: a server starts sooner, and most are never asked."""
        return describe(ROUTES, self._settings)

    async def get(self, admission: Admission) -> shapes.Banner:
        routes = [shapes.BannerRoute(each.method, each.path, each.purpose) for each in ROUTES]
        return shapes.Banner("qserver", __version__, ["v1"], routes, "/docs", "/openapi.json")

    async def get_openapi_json(self, admission: Admission) -> dict[str, Any]:
        return self._openapi

    @cached_property
    def _guide(self) -> bytes:
        routes = "\n".join(f"- {each.method} {each.path}: {each.purpose}" for each in ROUTES)
        text = (files("qserver.web.description") / "llms.txt").read_text(encoding="utf-8")
        return text.replace("{routes}", routes).encode()

    async def get_llms_txt(self, admission: Admission) -> bytes:
        return self._guide

    async def get_docs(self, admission: Admission) -> bytes:
        """The page, which is of the same origin as the console and asks for a key, too."""
        admission.headers_out += self._defence
        return self._page


def _policy_of(page: bytes) -> bytes:
    """The policy of a page whose script and style are in it: these run, and nothing else."""
    parts = re.findall(rb"<(?:script|style)>(.*?)</(?:script|style)>", page, re.DOTALL)
    digests = (b64encode(sha256(part).digest()).decode() for part in parts)
    return security_policy((), " ".join(f"'sha256-{digest}'" for digest in digests)).encode()

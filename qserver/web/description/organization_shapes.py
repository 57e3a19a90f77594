"""Requests and answers of the routes of organizations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from qserver.control.shares import BOUNDS
from qserver.web.description.shapes import Database, OpenTransactionRecord

LimitsChange = defstruct(
    "LimitsChange",
    [
        (name, Annotated[int, Meta(ge=least, le=most)] | None | UnsetType, UNSET)
        for name, (least, most) in BOUNDS.items()
    ],
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
)
"""Limits of an organization's own; null: what its tier says."""


class OrganizationChange(Struct, frozen=True, forbid_unknown_fields=True):
    tier: Literal["free", "pro", "unlimited"] | UnsetType = UNSET
    limits: LimitsChange | UnsetType = UNSET  # type: ignore[valid-type]


class Organization(Struct, frozen=True, kw_only=True):
    """The tier sets the limits, unless the organization has some of its own.

    `use` counts what it has now.
    """

    id: str
    name: str
    tier: str
    limits: dict[str, int | None]
    created_at: datetime
    use: dict[str, int]


class OrganizationAnswer(Organization, frozen=True):
    success: Literal[True] = True


class OrganizationsAnswer(Struct, frozen=True):
    success: Literal[True]
    organizations: list[Organization]
    next_cursor: str | None


class SignupAnswer(Struct, frozen=True):
    """A new organization with its first database and key, and the URLs to use."""

    success: Literal[True]
    organization: Organization
    database: Database
    key: str
    key_id: str
    urls: dict[str, str]


class ListedSession(Struct, frozen=True):
    """A session that lives; `key` is the name of its key, `database` the one it is limited to."""

    id: str
    key_id: str
    key: str
    scopes: list[str]
    database: str | None
    created_at: datetime
    expires_at: datetime


class SessionsAnswer(Struct, frozen=True):
    success: Literal[True]
    sessions: list[ListedSession]
    next_cursor: str | None


class HeldTransaction(OpenTransactionRecord, frozen=True):
    """An open transaction of any key; `is_used`: a request runs in it now."""

    key_id: str
    session_id: str | None
    is_used: bool


class HeldTransactionsAnswer(Struct, frozen=True):
    success: Literal[True]
    transactions: list[HeldTransaction]

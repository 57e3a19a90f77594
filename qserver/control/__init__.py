"""Organizations, databases, keys, sessions and rate limits: see `plane`."""

from __future__ import annotations

from qserver.control.databases import Databases as Databases
from qserver.control.databases import OpenDatabase as OpenDatabase
from qserver.control.databases import OpenDatabaseStatistics as OpenDatabaseStatistics
from qserver.control.logs import Logs as Logs
from qserver.control.logs import MemoryLogs as MemoryLogs
from qserver.control.plane import ControlPlane as ControlPlane
from qserver.control.rates import Allowance as Allowance
from qserver.control.records import SCOPES as SCOPES
from qserver.control.records import DatabaseFacts as DatabaseFacts
from qserver.control.records import DatabaseRecord as DatabaseRecord
from qserver.control.records import Grant as Grant
from qserver.control.records import KeyRecord as KeyRecord
from qserver.control.records import Organization as Organization
from qserver.control.records import OrganizationOverview as OrganizationOverview
from qserver.control.records import ResetReport as ResetReport
from qserver.control.records import SessionRecord as SessionRecord
from qserver.control.tiers import TIERS as TIERS
from qserver.control.tiers import Tier as Tier

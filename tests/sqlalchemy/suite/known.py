"""Tests of the suite that fail on qserver, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ONE_LEVEL: Final = "every transaction is serializable, whatever it asks for"
_OF_BOTH: Final = {
    "ComponentReflectionTestExtra::test_reflect_covering_index": (
        "INCLUDE of an index is accepted, and not kept"
    ),
    "IsolationLevelTest::test_dialect_user_setting_is_restored": _ONE_LEVEL,
}
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "http": _OF_BOTH,
    "wire": _OF_BOTH
    | {
        "IsolationLevelTest::test_all_levels": _ONE_LEVEL,
        "IsolationLevelTest::test_non_default_isolation_level": _ONE_LEVEL,
    },
    "postgresql": {},
}
"""By the target of a run."""

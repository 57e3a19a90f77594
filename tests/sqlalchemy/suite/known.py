"""Tests of the suite that fail on qserver, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ONE_LEVEL = "every transaction is serializable, whatever it asks for"
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "http": {"IsolationLevelTest::test_dialect_user_setting_is_restored": _ONE_LEVEL},
    "wire": dict.fromkeys(
        (
            "IsolationLevelTest::test_all_levels",
            "IsolationLevelTest::test_dialect_user_setting_is_restored",
            "IsolationLevelTest::test_non_default_isolation_level",
        ),
        _ONE_LEVEL,
    ),
    "postgresql": {},
}
"""By the target of a run."""

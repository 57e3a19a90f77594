"""The databases of the suite, which are made before it: qserver has no CREATE DATABASE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREPARED: Final[Mapping[str, str]] = {"default": "suite_default", "other": "suite_other"}
"""By their names in Django's settings."""

WITHOUT_INET: Final = "SUITE_WITHOUT_INET"
"""The variable that says so: then addresses are texts, or no table of a label could be made."""

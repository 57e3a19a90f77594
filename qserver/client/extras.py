"""Packages that the client can use and does not need: imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from qserver.errors import FeatureNotSupported


def module_of(package: str) -> ModuleType:
    if find_spec(package) is None:
        raise FeatureNotSupported(
            f"the package {package} is not installed", hint=f"Install it: pip install {package}"
        )
    return import_module(package)

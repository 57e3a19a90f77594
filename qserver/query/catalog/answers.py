"""The objects of a catalog, with the functions that look at them, for a context."""

from __future__ import annotations

from typing import Any

from qserver.query.catalog.functions import FUNCTIONS
from qserver.query.catalog.objects import CatalogObjects


class CatalogAnswers(CatalogObjects):
    __slots__ = ()

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the result of a function of the catalog."""
        return FUNCTIONS[name](self, *arguments)

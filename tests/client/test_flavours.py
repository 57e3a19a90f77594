"""The flavours have the same calls: one borrows what the other inherits, and names each."""

from __future__ import annotations

import inspect

import pytest

from qserver.client import Client, Transaction, TrioClient, TrioTransaction


def calls_of(flavour: type) -> dict[str, tuple[list[inspect.Parameter], str | None]]:
    """The arguments and the text of each public method."""
    return {
        name: (list(inspect.signature(each).parameters.values())[1:], each.__doc__)
        for name, each in inspect.getmembers(flavour, inspect.isfunction)
        if not name.startswith("_") and name not in ("close", "aclose")
    }


@pytest.mark.parametrize(
    ("blocking", "waiting"), [(Client, TrioClient), (Transaction, TrioTransaction)]
)
def test_each_has_the_calls_of_the_other(blocking: type, waiting: type) -> None:
    assert calls_of(blocking) == calls_of(waiting) != {}

"""The definition that CREATE EXTENSION leaves comes back from the log as it was."""

from __future__ import annotations

from qserver.values.extensions import Extension
from qserver.values.relations import definition_from_plain, definition_to_plain


def test_an_extension_comes_back_from_the_log() -> None:
    extension = Extension("pgcrypto", "tools", (("", "hashes"),), 16400)
    found = definition_from_plain(definition_to_plain(extension))
    assert isinstance(found, Extension)
    assert (found, found.oid) == (extension, 16400)

"""The session that the front page shows: it was one with a real server, and is today's."""

from __future__ import annotations

import re
import shutil
from xml.etree import ElementTree

import pytest

from docs.generate.recording import COMMANDS, PICTURE, made

TEXT = "{http://www.w3.org/2000/svg}text"


def texts(picture: str) -> str:
    return "".join(
        re.sub(r"\s", "", each.text or "") for each in ElementTree.XML(picture).iter(TEXT)
    )


def test_the_picture_shows_the_commands_as_they_are_now() -> None:
    shown = texts(PICTURE.read_text("utf-8"))
    for command in COMMANDS:
        assert re.sub(r"\s", "", command) in shown


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_session_is_drawn_with_what_the_server_answers() -> None:
    shown = texts(made())
    assert '{"name":"Grace","score":5}' in shown, "the live query told the change"
    assert '"diff":[{"table":"users","op":"delete"' in shown
    assert '"branch_of":"main"' in shown
    assert "success" in shown and '"error"' not in shown

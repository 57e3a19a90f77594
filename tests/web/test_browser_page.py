"""The page of the docs does what it shows: its script runs, against a real server."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.web.todos import OWN, STATEMENTS, todos

PAGE: Final = Path(__file__).parents[2] / "docs" / "todos.html"
BROWSER: Final = """
const elements = {};
function element() {
  const made = { value: "", textContent: "", listeners: {} };
  made.addEventListener = (name, listener) => { made.listeners[name] = listener; };
  made.replaceChildren = (...items) => {
    console.log(JSON.stringify(items.map((item) => item.textContent)));
    if (items.length === 2) submit();
    if (items.length === 3) process.exit(0);
  };
  return made;
}
globalThis.document = {
  getElementById: (id) => (elements[id] ??= element()),
  createElement: element,
};
function submit() {
  elements.title.value = "<b>from the page</b>";
  elements.form.listeners.submit({ preventDefault() {} });
}
const network = globalThis.fetch;
globalThis.fetch = async (address, options) => address === "/login"
  ? { json: async () => ({ url: process.env.URL, token: process.env.TOKEN }) }
  : network(address, options);
document.getElementById("title");
"""
"""What the page uses of a browser; it ends when three todos are shown."""


@pytest.mark.half
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
async def test_the_page_shows_todos_adds_one_and_follows_the_change() -> None:
    script = re.findall(r'<script type="module">\n(.*)</script>', PAGE.read_text(), re.DOTALL)[0]
    async with todos() as opened:
        add = "INSERT INTO todos (id, owner, title) VALUES (99, :user, :title)"
        statements = {"my_todos": STATEMENTS["my_todos"], "add": add}
        await opened.served.admin("PATCH", f"/v1/keys/{opened.key_id}", {"statements": statements})
        host, port = opened.served.address
        done = await trio.run_process(
            ["node", "--input-type=module", "-e", BROWSER + script],
            env={"URL": f"http://{host}:{port}", "TOKEN": await opened.session_of({"user": OWN})},
            capture_stdout=True,
        )
    shown = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert shown[0] == ["mine", "mine too"]
    assert shown[-1] == ["mine", "mine too", "<b>from the page</b>"]

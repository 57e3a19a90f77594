"""The docs as a site: built without a warning, and all that its pages link to is in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.generate.site import DOCS, build

LINKS = (("a", "href"), ("img", "src"), ("script", "src"))


class Page(HTMLParser):
    """What a page names, and what can be named in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.ids.add(value)
            elif (tag, name) in LINKS and value:
                self.links.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.mark.half
def test_every_link_of_every_page_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path.read_text("utf-8")) for path in site.glob("*.html")}
    astray = []
    for path, page in pages.items():
        if path.name in ("404.html", "todos.html"):  # its links hold from any place; an example
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists() or (
                parts.fragment and known and parts.fragment not in known.ids
            ):
                astray.append(f"{path.name}: {link}")
    assert len(pages) > 25 and astray == []


def test_every_page_is_in_the_menu_and_in_the_search(site: Path) -> None:
    pages = {f"{path.stem}.html" for path in DOCS.glob("*.md")}
    menu = Page((site / "http.html").read_text("utf-8")).links | {"http.html"}
    assert pages - {re.sub(r"^\./|#.*", "", link) for link in menu} == set()
    found = json.loads((site / "search.json").read_text("utf-8"))["items"]
    assert pages - {item["location"].partition("#")[0] for item in found} == set()
    assert any("Idempotency-Key" in json.dumps(item) for item in found)

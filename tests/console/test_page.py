"""The files of the console: found by their names alone, small, and without a way to write HTML."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

import qserver.console
from qserver.console import build, console_file, page_file, security_policy

assert qserver.console.__file__ is not None
ROOM: Final = Path(qserver.console.__file__).parent
STATIC: Final = ROOM / "static"
OWN: Final = sorted(
    path for path in STATIC.rglob("*") if path.is_file() and path.parent.name != "vendor"
)
SCRIPTS: Final = [path for path in OWN if path.suffix == ".js"]
COMPRESSED_BYTES_MAX: Final = 300_000
LINES_MAX: Final = 600

DANGEROUS: Final = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment|DOMParser"
    r"|setHTML\w*|parseHTML\w*|execCommand)\b|document\.write|\beval\s*\(|new Function|javascript:"
    r"|\.cssText|setAttribute\(\s*['\"](?:on|style)",
)
"""What makes code or HTML of a text, or writes a style that the policy refuses."""
ELSEWHERE: Final = re.compile(r"""https?://(?!www\.w3\.org/)|["'(]//\w""")


def test_every_script_makes_elements_without_html() -> None:
    assert len(SCRIPTS) > 20
    found = {
        str(path.relative_to(STATIC)): DANGEROUS.findall(_without_refusal(path.read_text()))
        for path in SCRIPTS
    }
    assert {name: names for name, names in found.items() if names} == {}


def _without_refusal(source: str) -> str:
    """Leave out the comments, and the line of `dom.js` that refuses these names."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("//", "*"))]
    return "\n".join(line for line in lines if not line.startswith("const REFUSED"))


@pytest.mark.parametrize(
    "line",
    [
        "cell.innerHTML = value;",
        "box.insertAdjacentHTML('beforeend', text)",
        "document.write(name)",
        "eval(text)",
        "a.setAttribute('onclick', text)",
    ],
)
def test_a_script_that_writes_html_is_found(line: str) -> None:
    assert DANGEROUS.search(line)


def test_nothing_names_another_place() -> None:
    """All addresses that a browser may load from are relative, or begin with /console/."""
    for path in OWN:
        if path.suffix != ".svg":
            assert ELSEWHERE.findall(path.read_text()) == [], path.name
    page = page_file("", "").content.decode()
    for address in re.findall(r"(?:href|src)=\"([^\"]*)\"", page):
        assert address.startswith(f"/console/{build()}/")


def test_imports_are_relative_and_of_files_that_are_there() -> None:
    for path in SCRIPTS:
        for target in re.findall(r"""(?:from |import\()"([^"\n]+)"\)?[;)]""", path.read_text()):
            assert target.startswith("."), f"{path.name} imports {target}"
            assert (path.parent / target).is_file(), f"{path.name} imports {target}"


def test_the_page_has_no_inline_script_and_no_inline_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert "<style" not in page and "style=" not in page and " on" not in page.split("<body")[0]
    assert re.findall(r"<script[^>]*>", page) == re.findall(r"<script[^>]* src=[^>]*>", page)


def test_everything_is_less_than_300_kilobytes_as_it_is_sent() -> None:
    names = [str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file()]
    sent = {name: console_file(name) for name in names if name.endswith((".js", ".css", ".svg"))}
    total = sum(len(file.compressed) for file in sent.values() if file is not None)
    total += len(page_file("", "").compressed)
    print(f"{total} bytes in {len(sent) + 1} files")
    assert None not in sent.values()
    assert total < COMPRESSED_BYTES_MAX


def test_everything_that_is_sent_is_in_the_wheel() -> None:
    """Files get into the wheel by their kind; one of a new kind would be left out."""
    project = tomllib.loads((ROOM.parents[1] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]
    for path in STATIC.rglob("*"):
        if path.is_file():
            package = ".".join(["qserver.console", *path.parent.relative_to(ROOM).parts])
            allowed = [*patterns["*"], *patterns.get(package, [])]
            assert f"*{path.suffix}" in allowed, f"{path.name} is not in the wheel"


def test_files_by_hand_are_small() -> None:
    assert [path.name for path in OWN if len(path.read_text().splitlines()) > LINES_MAX] == []


@pytest.mark.parametrize(
    "name",
    [
        "../page.py",
        "core/../../page.py",
        "/etc/passwd",
        "index.html",
        "core",
        "core/",
        "",
        ".",
        "..",
    ],
)
def test_a_path_finds_only_the_files_of_the_console(name: str) -> None:
    assert console_file(name) is None


def test_the_urls_of_the_service_stand_in_the_page_and_nothing_else_can() -> None:
    page = page_file('https://a.test"><script>', "https://c.test").content.decode()
    assert 'name="qserver-data-url" content="https://a.test&quot;&gt;&lt;script&gt;"' in page
    assert 'name="qserver-control-url" content="https://c.test"' in page


def test_the_policy_lets_requests_go_to_the_hosts_of_the_service_alone() -> None:
    assert "connect-src 'self' https://a.test;" in security_policy(["https://a.test"])
    assert "unsafe" not in security_policy([]) and "*" not in security_policy([])


def test_the_vendored_editor_has_its_licence_and_its_recipe() -> None:
    licence = (STATIC / "vendor" / "editor.LICENSE.txt").read_text()
    lock = (ROOM / "editor" / "package-lock.json").read_text()
    for package in re.findall(r'"node_modules/((?:@codemirror|@lezer)/[\w-]+)"', lock):
        assert f"  {package}@" in licence
    assert "MIT License" in licence
    assert (ROOM / "editor" / "build").stat().st_mode & 0o111

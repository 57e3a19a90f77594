"""`make site`: the docs as a site with search, in build/site.

    README.md ─► index.md ┐
    docs/*.md, pictures ──┴─► build/docs/pages ── zensical ──► build/docs/site ─► build/site

The pages are read as they are: links that work between files of the tree work between pages. A link
to a page or a heading that is not there is a warning, and one warning ends it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parent.parent
ROOT: Final = DOCS.parent
TO_DOCS: Final = re.compile(r"(?<=\]\()docs/")
LICENSE: Final = re.compile(r"\[(LICENSE)\]\(LICENSE\)")


def stage(folder: Path) -> None:
    """Lay out what is read."""
    pages = folder / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("generate", "site", "__pycache__"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    index = LICENSE.sub(r"\1", TO_DOCS.sub("", text))
    (pages / "index.md").write_text(index, encoding="utf-8")
    shutil.copyfile(DOCS / "site" / "mkdocs.yml", folder / "mkdocs.yml")


def build(folder: Path) -> Path:
    """Build the site in an empty folder, and return where it is; raise if there is a warning."""
    stage(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run([*command, "--config-file", str(folder / "mkdocs.yml")], check=True)
    return folder / "site"


def main() -> int:
    made = ROOT / "build" / "site"
    folder = ROOT / "build" / "docs"
    for old in (made, folder):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        build(folder).rename(made)
    except subprocess.CalledProcessError as error:
        print("The site was not built: it says above what to mend.", file=sys.stderr)
        return error.returncode
    print(f"Open {(made / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

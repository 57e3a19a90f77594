"""Django's tests: they are in its source archive, and not in what is installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

DOWNLOAD_SECONDS_MAX: Final = 600


class NotToBeHad(Exception):
    """There is no Django here, or the registry has not answered with its archive."""


def tests_folder() -> Path:
    """The folder of runtests.py, of the release that is installed; it is downloaded once."""
    try:
        import django
    except ImportError as error:
        raise NotToBeHad("Django is not installed") from error
    name = f"django-{django.get_version()}"
    kept = Path(gettempdir()) / f"qserver-suite-{name}"
    if not kept.exists():
        with TemporaryDirectory(dir=kept.parent, prefix="qserver-suite-") as folder:
            _unpack(name, Path(folder))
            (Path(folder) / name).rename(kept)
    return kept / "tests"


def _unpack(name: str, folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"),
        *("--no-build-isolation", "--dest", str(folder), name.replace("-", "==")),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS_MAX, check=False
    )
    archive = folder / f"{name}.tar.gz"
    if not archive.exists():
        raise NotToBeHad(f"pip cannot download {archive.name}: {done.stderr.strip()[-300:]}")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")

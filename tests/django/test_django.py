"""A project of Django on qserver over the wire: its migrations, its models, its admin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dbapi.served import KEY, client_of, served
from tests.patience import PATIENCE_SECONDS
from tests.web.contract.servers import free_port

pytest.importorskip("django", reason="Django is not installed")

ROOT = Path(__file__).parents[2]


BOOK = """
    id = models.BigAutoField(primary_key=True)
    author = models.ForeignKey(LibraryAuthor, models.DO_NOTHING)
    title = models.TextField()
    price = models.DecimalField(max_digits=8, decimal_places=2)
    sold = models.IntegerField()
    about = models.JSONField()
    made = models.DateTimeField(blank=True, null=True)
    lasts = models.DurationField(blank=True, null=True)
    key = models.UUIDField(blank=True, null=True)
        unique_together = (('author', 'title'),)
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    with served(tmp_path, QSERVER_PG_PORT=str(port)) as running:
        with client_of(running) as client:
            client.create_database("library")
        yield f"postgresql://me:{KEY}@127.0.0.1:{port}/library"


@pytest.mark.nightly
def test_a_project_migrates_works_is_flushed_and_goes_back_to_nothing(
    tmp_path: Path, url: str
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "__init__.py").touch()
    paths = [str(tmp_path), str(ROOT), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.django.project", "try_all"],
        cwd=tmp_path,
        env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("pages_of_the_admin") == 2
    found = done.stdout.splitlines()
    assert [line for line in BOOK.splitlines() if line not in found] == [], done.stdout

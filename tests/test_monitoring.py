"""The rules of Prometheus and the dashboard of Grafana are valid, and their metrics exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.real_server import KEY, real_server
from tests.patience import eventually

FOLDER = Path(__file__).parent.parent / "docs" / "monitoring"
ALERTS, ALERTS_TEST, DASHBOARD = (
    FOLDER / name for name in ("alerts.yml", "alerts_test.yml", "grafana.json")
)
METRIC = re.compile(r"\b(?:qserver|process)_[a-z_]+")
MEASURED = "qserver_disk_free_bytes"
GRID_WIDTH = 24


def expressions() -> dict[str, str]:
    """What is asked of Prometheus, by the alert or panel that asks it."""
    found = {}
    for part in ALERTS.read_text(encoding="utf-8").split("- alert: ")[1:]:
        name, _, rest = part.partition("\n")
        found[name] = rest[rest.index("expr:") : rest.index("labels:")]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    for variable in dashboard()["templating"]["list"]:
        found[f"${variable['name']}"] = variable["query"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def metrics_of_a_server(folder: Path, wanted: set[str]) -> set[str]:
    """The names on the page of a real server that also serves clients of PostgreSQL.

    Some are there when they have been measured for the first time.
    """
    found: set[str] = set()
    with real_server(folder, {"QSERVER_PG_PORT": "0"}) as address:
        headers = {"Authorization": f"Bearer {KEY}"}
        body = json.dumps({"sql": "SELECT 1"}).encode()
        with urlopen(Request(f"{address}/v1/query", body, headers)):
            pass

        def are_there() -> bool:
            with urlopen(Request(f"{address}/metrics", headers=headers)) as page:
                lines = page.read().decode().splitlines()
            found.update(re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#"))
            found.update(line.split()[2] for line in lines if line.startswith("# TYPE"))
            return MEASURED in found

        eventually(are_there, f"{wanted - found} never came")
    return found


@pytest.mark.long
def test_every_metric_of_rules_and_dashboard_is_one_of_a_real_server(tmp_path: Path) -> None:
    every = set(METRIC.findall(" ".join(expressions().values())))
    there = metrics_of_a_server(tmp_path / "data", every)
    for name, asked in expressions().items():
        wanted = set(METRIC.findall(asked))
        assert wanted or name in ("$source", "QserverDown"), name
        assert wanted <= there, (name, wanted - there)


def test_the_dashboard_is_one_that_grafana_can_lay_out() -> None:
    found = dashboard()
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= GRID_WIDTH, panel["title"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, f"{panel['title']} covers another"
        cells |= own
        if panel["type"] != "row":
            assert panel["targets"] and panel["fieldConfig"]["defaults"]["unit"]
    names = {variable["name"] for variable in found["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(found)))
    assert used == names


def test_every_rule_says_what_to_do() -> None:
    parts = ALERTS.read_text(encoding="utf-8").split("- alert: ")[1:]
    assert len(parts) > 10
    for part in parts:
        assert re.search(r"severity: (page|ticket)", part), part
        assert "summary:" in part and "action:" in part, part


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(("action", "file"), [("check", ALERTS), ("test", ALERTS_TEST)])
def test_promtool_finds_nothing_wrong_with_the_rules(action: str, file: Path) -> None:
    done = subprocess.run(
        ["promtool", action, "rules", file.name], cwd=FOLDER, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_reads_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    replaced = {"$instance": ".*", "$database": ".*"}
    lines = ["groups:", "- name: dashboard", "  rules:"]
    for at, asked in enumerate(
        asked for name, asked in expressions().items() if "label_values" not in asked
    ):
        if asked == "prometheus" or asked.startswith("expr:"):
            continue
        for name, value in replaced.items():
            asked = asked.replace(name, value)
        lines += [f"  - record: panel_{at}", f"    expr: {json.dumps(asked)}"]
    file = tmp_path / "panels.yml"
    file.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

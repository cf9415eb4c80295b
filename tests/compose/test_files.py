"""What stands in docker-compose.yml and around it, without an engine."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.compose.engine import PATH, ROOT, run

FILE = ROOT / "docker-compose.yml"


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(FILE.read_text())["services"]


def test_compose_1_29_reads_it(tmp_path):
    """Its own check goes by the specification's schema."""
    if shutil.which("docker-compose", path=PATH) is None:
        pytest.skip("docker-compose is not installed")
    assert "headwater-broker:local" in run("docker-compose", "-f", str(FILE), "config")


def test_it_passes_the_specifications_schema(tmp_path):
    """As its authors publish it now, in the package check-jsonschema."""
    run("python3", "-m", "venv", str(tmp_path / "venv"))
    pip = [str(tmp_path / "venv/bin/pip"), "install", "-q", "check-jsonschema"]
    if subprocess.run(pip, capture_output=True, timeout=300, check=False).returncode != 0:
        pytest.skip("the package check-jsonschema cannot be had")
    check = str(tmp_path / "venv/bin/check-jsonschema")
    run(check, "--builtin-schema", "vendor.compose-spec", str(FILE))


def test_every_service_is_bounded_and_checked(services):
    for name, one in services.items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert {"mem_limit", "cpus", "pids_limit", "user", "image"} <= set(one), name
        if one["image"].startswith("headwater-broker") and not name.startswith("replay"):
            continue  # its image has a health check
        assert "healthcheck" in one, name


def test_every_secret_is_made_by_the_script(tmp_path):
    """And no secret stands in the file itself."""
    script = str(ROOT / "deploy/make_secrets.py")
    folder = tmp_path / "secrets"
    run(str(ROOT / ".venv/bin/python"), script, str(folder))
    named = yaml.safe_load(FILE.read_text())["secrets"].values()
    for one in named:
        file = folder / Path(one["file"]).name
        assert file.stat().st_size > 16, file
        assert file.stat().st_mode & 0o007 == 0, file
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert run(str(ROOT / ".venv/bin/python"), script, str(folder)) == "all secrets are there\n"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_metrics_that_are_asked_for_are_told_by_brokers_or_by_the_server():
    """A query of a metric that nobody has would be empty, and an alert on it silent, for ever."""
    told = (ROOT / "broker/metrics/ledger.py").read_text() + (ROOT / "server/face.py").read_text()
    told += (ROOT / "server/monitor.py").read_text()
    board = json.loads((ROOT / "deploy/grafana/dashboards/headwater.json").read_text())
    asked = [one["expr"] for panel in board["panels"] for one in panel["targets"]]
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    asked += [one["expr"] for group in rules["groups"] for one in group["rules"]]
    for name in set(re.findall(r"headwater_\w+", " ".join(asked))):
        assert name.removesuffix("_total").removesuffix("_bucket") in told, name


def test_prometheus_reads_its_files():
    if shutil.which("promtool", path=PATH) is None:
        pytest.skip("promtool (Debian's package prometheus) is not installed")
    run("promtool", "check", "rules", str(ROOT / "deploy/prometheus/alerts.yml"))

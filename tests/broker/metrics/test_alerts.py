"""Each alert fires on its fault and on no other, and all are silent on a healthy day.

Prometheus' own program runs the rules over described series, in simulated time.
"""

import json
import re
import subprocess

import pytest
import yaml

from broker.metrics.ledger import FAMILIES
from server.monitor import METRICS
from tests.test_docs import FENCE, ROOT

RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
PAGE = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
(OWN,) = [match[3] for match in FENCE.finditer(PAGE) if match[2] == "own.yml"]
SINCE_MIN, DAY_MIN = 60, 1440
GB = 2**30
DAY_S = 86_400
AT = 'job="brokers",instance="hall:8080"'
JOURNAL, LATENCY = "headwater_journal_wait_seconds", "headwater_detection_latency_seconds"

# One healthy network: series, and the values of a day, a minute apart.
HEALTHY = {
    'up{job="homes",instance="hall:8080"}': "1+0x{n}",
    'up{job="spark",instance="spark-job:8090"}': "1+0x{n}",
    f'headwater_waited_for{{broker="pi3",{AT}}}': "0+0x{n}",  # it is away, as it has promised
    f'headwater_stand_in_following{{broker="pi1",{AT}}}': "1+0x{n}",
    f'headwater_link_up{{peer="pi1",{AT}}}': "1+0x{n}",
    f"headwater_intake_held{{{AT}}}": "0+0x{n}",
    f'headwater_join_up{{join="zigbee",{AT}}}': "1+0x{n}",
    f"headwater_events_received_total{{{AT}}}": "0+600x{n}",
    f'headwater_events_dropped_total{{reason="late",{AT}}}': "7+0x{n}",
    f'headwater_events_dropped_total{{reason="undeclared_type",{AT}}}': "0+5x{n}",
    f"headwater_subscriptions_suspended{{{AT}}}": "0+0x{n}",
    f"headwater_clock_gap_seconds{{{AT}}}": "0+0x{n}",
    f'{JOURNAL}_bucket{{le="0.005",{AT}}}': "0+60x{n}",
    f'{JOURNAL}_bucket{{le="60.0",{AT}}}': "0+60x{n}",
    f'{JOURNAL}_bucket{{le="+Inf",{AT}}}': "0+60x{n}",
    f'{LATENCY}_bucket{{le="0.5",{AT}}}': "0+6x{n}",
    f'{LATENCY}_bucket{{le="60.0",{AT}}}': "0+6x{n}",
    f'{LATENCY}_bucket{{le="+Inf",{AT}}}': "0+6x{n}",
    f'headwater_disk_bytes{{what="free",{AT}}}': f"{8 * GB}+0x{{n}}",
    f'headwater_disk_bytes{{what="size",{AT}}}': f"{32 * GB}+0x{{n}}",
    f'headwater_certificate_end_seconds{{what="links",{AT}}}': f"{90 * DAY_S}+0x{{n}}",
    f'headwater_plan_limits_broken{{limit="pi1 capacity",{AT}}}': "0+0x{n}",
    'headwater_server_stream_lag{stream="region",broker="hall",job="spark"}': "12+0x{n}",
}
# By alert: the series that shows the fault from the first hour on, and how it goes on then.
FAULTS = {
    "HomeDown": ('up{job="homes"', "0+0x{n}"),
    "BrokerMissed": ("headwater_waited_for", "1+0x{n}"),
    "StandInAway": ("headwater_stand_in_following", "0+0x{n}"),
    "LinkDown": ("headwater_link_up", "0+0x{n}"),
    "IntakeHeld": ("headwater_intake_held", "1+0x{n}"),
    "JoinedServerAway": ("headwater_join_up", "0+0x{n}"),
    "EventsDropped": ('headwater_events_dropped_total{reason="late"', "8+1x{n}"),
    "SubscriptionSuspended": ("headwater_subscriptions_suspended", "1+0x{n}"),
    "ClockDoubted": ("headwater_clock_gap_seconds", "-7200+0x{n}"),
    "JournalSlow": (f'{JOURNAL}_bucket{{le="0.005"', "3600+0x{n}"),
    "DiskNearlyFull": ('headwater_disk_bytes{what="free"', f"{GB}+0x{{n}}"),
    "CertificateEnding": ("headwater_certificate_end_seconds", f"{10 * DAY_S}+0x{{n}}"),
    "PlanLimitsBroken": ("headwater_plan_limits_broken", "1+0x{n}"),
    "SparkDown": ('up{job="spark"', "0+0x{n}"),
    "SparkBehind": ("headwater_server_stream_lag", "20000+0x{n}"),
    "ResultsLate": (f'{LATENCY}_bucket{{le="0.5"', "360+0x{n}"),
}


def rules():
    """All rules of the file, and that of the page, by alert."""
    groups = [*RULES["groups"], *yaml.safe_load(OWN)["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def minutes(text):
    assert text.endswith("m"), text
    return int(text.removesuffix("m"))


def firing(at_min, *names):
    """The question which alerts fire at a minute, and that these do."""
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{at_min}m",
        "exp_samples": [
            {"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(names)
        ],
    }


def scene(series, *questions):
    rows = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": rows, "promql_expr_test": list(questions)}


def faulty(alert):
    """The healthy network until its fault, and when the alert is to fire and was not to yet."""
    begins, values = FAULTS[alert]
    series = {name: text.format(n=DAY_MIN // 8) for name, text in HEALTHY.items()}
    changed = [name for name in series if name.startswith(begins)]
    assert len(changed) == 1, alert
    before = HEALTHY[changed[0]].format(n=SINCE_MIN - 1)
    series[changed[0]] = f"{before} {values.format(n=DAY_MIN // 8 - SINCE_MIN)}"
    # A rate over ten minutes has to fill with the fault besides.
    fires_min = SINCE_MIN + minutes(rules()[alert].get("for", "0m")) + 12
    return scene(series, firing(SINCE_MIN - 1), firing(fires_min, alert))


def run(program, folder, scenes):
    """What Prometheus' program says of the rules in these scenes: its status and its output."""
    (folder / "own.yml").write_text(OWN)
    described = {
        "rule_files": [str(ROOT / "deploy/prometheus/alerts.yml"), "own.yml"],
        "evaluation_interval": "1m",
        "tests": scenes,
    }
    (folder / "scenes.yml").write_text(json.dumps(described))
    done = subprocess.run(
        [program, "test", "rules", "scenes.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_alert_has_a_fault_and_stands_on_the_page():
    assert set(rules()) == set(FAULTS)
    told = re.findall(r"^\| `(\w+)` \|", PAGE[PAGE.index("## Alarms") :], re.MULTILINE)
    assert told == [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
    assert all(rule["annotations"]["summary"] for rule in rules().values())


def test_every_metric_of_a_rule_is_one_that_is_told():
    """A rule about a metric that nobody has would be silent for ever."""
    names = {row.name + "_total" * (row.kind == "counter") for row in FAMILIES}
    names |= {f"{row.name}_bucket" for row in FAMILIES if row.kind == "histogram"} | set(METRICS)
    asked = set(re.findall(r"headwater_\w+", " ".join(rule["expr"] for rule in rules().values())))
    assert asked
    assert asked <= names


@pytest.mark.program("promtool")
def test_each_alert_fires_on_its_fault_alone(find_program, tmp_path):
    status, said = run(find_program("promtool"), tmp_path, [faulty(alert) for alert in FAULTS])
    assert status == 0, said


@pytest.mark.program("promtool")
def test_no_alert_fires_on_a_healthy_day(find_program, tmp_path):
    series = {name: text.format(n=DAY_MIN) for name, text in HEALTHY.items()}
    questions = [firing(at_min) for at_min in range(0, DAY_MIN + 1, 30)]
    status, said = run(find_program("promtool"), tmp_path, [scene(series, *questions)])
    assert status == 0, said


@pytest.mark.program("promtool")
def test_an_alert_that_does_not_fire_would_be_noticed(find_program, tmp_path):
    """The scenes can fail: the fault of one alert is asked for another."""
    described = faulty("LinkDown")
    described["promql_expr_test"][1] = firing(90, "IntakeHeld")
    status, said = run(find_program("promtool"), tmp_path, [described])
    assert status == 1
    assert "LinkDown" in said

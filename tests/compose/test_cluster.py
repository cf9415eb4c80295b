"""docker-compose.yml on a real engine: what goes in at a sensor comes out, whatever fails."""

import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.compose.cluster import PROJECT
from tests.compose.engine import PYTHONS, run

pytestmark = pytest.mark.timeout(900)
BROKERS = ("city", "broker", "pass", "hut")
HURT_S = 6.0  # longer than a link is silent before it is cut would be 6.5: both are met
REACH = "import socket, sys; socket.create_connection((sys.argv[1], 1883), 3)"
# A broker and what stands around it at a time; Spark's first, which takes longest to come again,
# and does so while the others are hurt.
GROUPS = (("spark-worker_1", "city_1"), ("spark-job_1", "broker_1"), ("spark-master_1", "pass_1"),
          ("prometheus_1", "mosquitto_1", "hut_1"))  # fmt: skip


def test_images_are_small_and_the_brokers_has_no_java_and_no_compiler(engine, folder):
    """What runs beside sensors holds what a broker needs, and nothing to build with."""
    looked = "import shutil; print([n for n in ('java', 'cc', 'gcc', 'pip') if shutil.which(n)])"
    run = ["run", "--rm", "--network", "none"]
    assert engine.docker(*run, "headwater-broker:local", "python", "-c", looked).strip() == "[]"
    sizes = engine.docker("images", "--format", "{{.Repository}}:{{.Tag}} {{.Size}}").splitlines()
    told = [line for line in sizes if line.startswith(("headwater-", PYTHONS[0]))]
    sys.stdout.write("\n".join(told))


def test_containers_are_hardened(cluster):
    """No root, no file system to write to, no capability, a bound of memory: each of them."""
    for name in cluster.containers():
        said = json.loads(cluster.engine.docker("inspect", name))[0]
        host = said["HostConfig"]
        assert said["Config"]["User"].split(":")[0] not in {"", "0", "root"}, name
        assert host["ReadonlyRootfs"], name
        assert host["CapDrop"] == ["ALL"], name
        assert host["Memory"] > 0, name
        assert host["PidsLimit"] > 0, name
        assert not any(
            "PASSWORD=" in one or "SECRET=" in one for one in said["Config"]["Env"] or []
        ), name


def test_six_brokers_find_each_other(cluster):
    """By seed addresses alone: two with names of their own, four with those of their hosts."""
    assert len(cluster.containers(*BROKERS)) == 6
    cluster.until(lambda: len(cluster.brokers_known()) == 6)


def test_a_site_is_a_network_of_its_own(cluster):
    """A sensor of the city reaches the city's brokers and nobody of the pass."""
    inside = f"{PROJECT}_replay-city_1"
    cluster.inside(inside, "python", "-c", REACH, "mqtt")
    with ThreadPoolExecutor() as at_once:  # the engine asks other servers for names, in vain
        ask = ("python", "-c", REACH)
        asked = [
            at_once.submit(cluster.inside, inside, *ask, name)
            for name in ("pass", "mosquitto", "hut")
        ]
    for answer in asked:
        with pytest.raises(AssertionError, match="gaierror"):
            answer.result()


def test_the_second_up_changes_nothing(cluster):
    """The same containers go on."""
    before = cluster.ids()
    cluster.up()
    assert cluster.ids() == before


def test_each_reading_of_a_sensor_is_in_sparks_history_once(cluster):
    """From the city over other brokers, and from the pass over mosquitto, to home and Spark."""
    networks = ("city", "pass")
    for network in networks:
        cluster.sense(f"calm-{network}", network)
    time.sleep(8.0)
    for network in networks:
        count = cluster.sensed(f"calm-{network}")
        assert count > 20
        cluster.all_in_history(f"calm-{network}", count)


def pause(engine, container):
    """The kernel may need more than one try where a process is in the middle of a write."""
    for tries in range(10, -1, -1):
        try:
            engine.docker("pause", container)
        except AssertionError as error:
            if "unable to freeze" not in str(error) or not tries:
                raise
            time.sleep(0.5)
        else:
            return


def cut_off(engine, containers):
    """Take them off their networks; return what brings each back, with the names it had there."""
    back = []
    for container in containers:
        said = json.loads(engine.docker("inspect", container))[0]["NetworkSettings"]["Networks"]
        for network, one in said.items():
            engine.docker("network", "disconnect", network, container)
            aliases = [word for alias in one["Aliases"] for word in ("--alias", alias)]
            back.append([*aliases, network, container])
    return back


def hurt(cluster, way, containers):
    """Do it to containers, and undo it."""
    engine = cluster.engine
    if way == "killed":
        engine.docker("kill", *containers)
        time.sleep(1.0)
        engine.docker("start", *containers)
    elif way == "paused":
        for container in containers:
            pause(engine, container)
        time.sleep(HURT_S)
        engine.docker("unpause", *containers)
    elif way == "cut off":
        back = cut_off(engine, containers)
        time.sleep(HURT_S)
        for words in back:
            engine.docker("network", "connect", *words)
    else:
        engine.docker("stop", "-t", "30", *containers)
        engine.docker("rm", *containers)
        cluster.up("--no-recreate")


@pytest.mark.parametrize("way", ["killed", "paused", "cut off", "recreated"])
def test_containers_may_fail_and_nothing_is_lost(cluster, way):
    """Some at a time, until each has failed, while a sensor of the city publishes.

    That its readings are in the history, once, is asked of all of them further below.
    """
    sensor = f"sensor-{way.replace(' ', '-')}"
    cluster.sense(sensor)
    for group in GROUPS:
        hurt(cluster, way, [f"{PROJECT}_{name}" for name in group])
        time.sleep(1.0)
    cluster.sensed(sensor)


def test_all_that_failed_are_healthy_again(cluster):
    cluster.until_healthy(240.0)


def test_a_rolling_update_of_all_brokers_loses_nothing(cluster):
    """Each container is made anew, one at a time, while a sensor publishes."""
    before = cluster.ids()
    cluster.sense("rolling")
    script = Path(cluster.context / "deploy" / "update.sh")
    environ = {"COMPOSE": "docker-compose", "COMPOSE_PROJECT_NAME": PROJECT}
    run("sh", str(script), *BROKERS, timeout_s=600, DOCKER_HOST=cluster.engine.host, **environ)
    after = cluster.ids()
    mine = cluster.containers(*BROKERS)
    assert len(mine) == 6
    assert not set(before.values()) & {after[name] for name in mine}
    cluster.until(lambda: len(cluster.brokers_known()) == 6)
    cluster.sensed("rolling")


def test_more_and_fewer_brokers(cluster):
    """`--scale broker=9`: all take part, and who comes again later has its name from the volume."""
    cluster.sense("scaled")
    cluster.up("--no-recreate", "--scale", "broker=9")
    cluster.until(lambda: len(cluster.brokers_known()) == 13, 240.0)
    cluster.until_healthy(240.0)
    known = set(cluster.brokers_known())
    cluster.up("--no-recreate", "--scale", "broker=2")
    cluster.until(lambda: len(cluster.brokers_known()) == 6, 240.0)
    cluster.sensed("scaled")
    cluster.up("--no-recreate", "--scale", "broker=9")
    cluster.until(
        lambda: set(cluster.brokers_known()) == known, 240.0
    )  # the volume has their names
    cluster.up("--no-recreate", "--scale", "broker=2")


def test_whatever_failed_no_reading_is_lost_or_doubled(cluster):
    """All that sensors published in the tests above, while containers failed, came and went."""
    assert cluster.published
    for sensor, count in cluster.published.items():
        assert count > 20
        cluster.all_in_history(sensor, count)


def test_the_whole_cluster_goes_on_after_a_restart(cluster):
    """All containers end and come again, gone with `down` and made anew by `up`."""
    cluster.sense("restarted")
    time.sleep(3.0)
    count = cluster.sensed("restarted")
    names = cluster.brokers_known()
    for name in cluster.engine.docker("ps", "-aq", "--filter", "name=sensor-").split():
        cluster.engine.docker("rm", "-f", name)
    cluster.down()
    cluster.up()
    cluster.until_healthy(300.0)
    cluster.until(lambda: set(cluster.brokers_known()) >= set(names) & {"city", "pass"})
    cluster.all_in_history("restarted", count)
    cluster.sense("after")
    time.sleep(3.0)
    cluster.all_in_history("after", cluster.sensed("after"))


# --- what there is to see -------------------------------------------------------------------


def queried(cluster, path):
    code = (
        "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode())"
    )
    words = ["python", "-c", code, f"http://prometheus:9090/api/v1/{path}"]
    return json.loads(cluster.inside(f"{PROJECT}_pass_1", *words))["data"]


def test_prometheus_scrapes_every_broker_and_spark(cluster):
    """By its list of targets: series of containers that are gone stay for minutes in answers."""
    expected = {"brokers": 6, "homes": 2, "spark": 1}
    up, down = Counter(), {}

    def all_up():
        targets = queried(cluster, "targets?state=active")["activeTargets"]
        up.clear()
        up.update(one["labels"]["job"] for one in targets if one["health"] == "up")
        down.clear()
        down.update({one["scrapeUrl"]: one["lastError"] for one in targets})
        return up == expected

    try:
        cluster.until(all_up, 180.0)
    except AssertionError as error:
        raise AssertionError(f"{dict(up)} of {down}\n{error}") from None


def test_each_query_of_the_dashboard_finds_something(cluster):
    """On the real Prometheus, with what the real brokers and Spark say."""
    from urllib.parse import quote

    panels = json.loads(
        Path(cluster.context / "deploy/grafana/dashboards/headwater.json").read_text()
    )
    empty = []

    def all_found():
        empty[:] = [
            target["expr"]
            for panel in panels["panels"]
            for target in panel["targets"]
            if not queried(cluster, f"query?query={quote(target['expr'])}")["result"]
        ]
        return not empty

    cluster.until(all_found, 120.0)


def test_an_alert_fires_for_a_home_that_is_down_until_it_is_back(cluster):
    rules = yaml.safe_load(Path(cluster.context / "deploy/prometheus/alerts.yml").read_text())
    names = {one["alert"] for group in rules["groups"] for one in group["rules"]}
    loaded = queried(cluster, "rules")["groups"]
    assert {one["name"] for group in loaded for one in group["rules"]} == names
    assert all(one["health"] == "ok" for group in loaded for one in group["rules"])

    def alerts():
        return {one["labels"]["alertname"] for one in queried(cluster, "alerts")["alerts"]}

    cluster.engine.docker("stop", f"{PROJECT}_city_1")
    cluster.until(lambda: "HomeDown" in alerts(), 120.0)
    cluster.engine.docker("start", f"{PROJECT}_city_1")
    cluster.until(lambda: "HomeDown" not in alerts(), 120.0)

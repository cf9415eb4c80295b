"""A broker from a Debian package, in a bare Debian: installed, cut off, updated, taken away."""

import json
import subprocess

import pytest

from tests.compose.engine import run

pytestmark = pytest.mark.timeout(600)
TEXT = "event Temp(val: float)\nsubscription Frost from me to me detect Temp(val < 0)\n"
EMULATED_S = "120"  # what an answer may take of a broker that is emulated on a busy machine


def installed(root, package):
    root.copy(package, "package.deb")
    return root.run("dpkg", "--install", "/package.deb")


def submit_and_detect(root, timestamp):
    """A subscription by the command, an event by HTTP, and its result by the command."""
    at = ("--broker", f"http://127.0.0.1:{root.port}", "--timeout", EMULATED_S)
    (root.place / "frost.hw").write_text(TEXT)
    root.run("headwater", "submit", "/frost.hw", *at, "--as", "me", "--wait")
    words = ["headwater", "tail", "Frost", "--count", "1", "--json", *at]
    tail = subprocess.Popen(["/usr/sbin/chroot", str(root.place), *words], stdout=subprocess.PIPE)
    answer = None
    for number in range(50):
        event = {"type": "Temp", "source": "roof", "timestamp": timestamp + number, "val": -1}
        answer = root.asked("/v1/events", json.dumps(event), "application/json")
        assert answer["accepted"] == 1
        try:
            told, _ = tail.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            continue
        assert b"Frost" in told
        return
    tail.kill()
    raise AssertionError(f"no result came; the last event was {answer}")


def test_a_broker_is_installed_survives_a_power_cut_and_an_update_and_goes(root, packages):
    first, second = packages
    assert "start it with: headwater broker" in installed(root, first)
    assert root.run("headwater", "--version") == "headwater 0.1.0\n"
    root.start()
    submit_and_detect(root, 1_700_000_000_000)
    root.end()
    root.start()
    assert root.subscriptions() == ["Frost"], "what was acknowledged outlasts a power cut"
    root.end()
    with (root.place / "etc/headwater/broker.toml").open("a") as file:
        file.write("# mine\n")
    told = installed(root, second)
    assert "as it is" in told
    assert "# mine" in (root.place / "etc/headwater/broker.toml").read_text()
    root.start()
    assert root.subscriptions() == ["Frost"], "an update goes on with the data"
    root.end()
    root.run("dpkg", "--remove", "headwater")
    assert not (root.place / "etc/systemd/system/headwater.service").exists()
    assert not (root.place / "usr/lib/headwater").exists(), "nothing is left but what is kept"
    installed(root, first)
    root.start()
    assert root.subscriptions() == ["Frost"], "who comes again finds all as it was"
    root.end()
    root.run("dpkg", "--purge", "headwater")
    for name in ("etc/headwater", "var/lib/headwater", "usr/bin/headwater"):
        assert not (root.place / name).exists(), name
    assert "headwater" not in (root.place / "etc/passwd").read_text()


@pytest.mark.timeout(3_600)
def test_the_package_for_another_architecture_runs(other_root, other_architecture, tmp_path):
    """Where programs are emulated: that all parts are for that architecture, not how fast."""
    from deb import build

    package = build(other_architecture, tmp_path / "debs", "1.0")
    installed(other_root, package)
    other_root.start()
    submit_and_detect(other_root, 1_700_000_000_000)
    other_root.end()
    other_root.start()
    assert other_root.subscriptions() == ["Frost"]
    other_root.end()
    other_root.run("dpkg", "--purge", "headwater")
    assert not (other_root.place / "usr/lib/headwater").exists()


def data_of(root):
    """The bytes of all files in the broker's folder, by their names.

    But for SQLite's index of its own log: who reads a database writes in it that he does.
    """
    files = [
        file for file in (root.place / "var/lib/headwater/broker").rglob("*") if file.is_file()
    ]
    return {file: file.read_bytes() for file in files if not file.name.endswith("-shm")}


def test_an_older_package_refuses_data_of_a_newer_one(root, packages, newer_package):
    older = packages[0]
    installed(root, newer_package)
    root.start()
    submit_and_detect(root, 1_700_000_000_000)
    root.end()
    data = data_of(root)
    root.copy(older, "older.deb")
    sentences = root.run("dpkg", "--install", "/older.deb", status=1)
    assert "journal has format 2, and this version knows formats up to 1" in sentences
    assert "`headwater restore DIR" in sentences
    assert data_of(root) == data
    # The newer one stays, whole, and goes on.
    assert root.run("headwater", "--version") == "headwater 2.0\n"
    assert "install ok installed" in root.run("dpkg", "--status", "headwater")
    root.start()
    assert root.subscriptions() == ["Frost"]
    root.end()

    # Nor does it take the place of one that was removed, whose data were left.
    data = data_of(root)
    root.run("dpkg", "--remove", "headwater")
    sentences = root.run("dpkg", "--install", "/older.deb", status=1)
    assert "journal has format 2" in sentences
    assert not (root.place / "usr/bin/headwater").exists()

    # Unpacked past dpkg, its broker refuses in its turn.
    run("dpkg-deb", "--extract", str(older), str(root.place))
    command = "headwater broker --config /etc/headwater/broker.toml"
    sentences = root.run("su", "headwater", "-s", "/bin/sh", "-c", command, status=2)
    assert "is of format 2, and this version of Headwater knows formats up to 1" in sentences
    journal = {file: text for file, text in data.items() if file.parent.name == "journal"}
    assert journal, "there is something to lose"
    assert {file: text for file, text in data_of(root).items() if file in journal} == journal
    installed(root, newer_package)
    root.start()
    assert root.subscriptions() == ["Frost"], "the newer one finds all as it was"
    root.end()


def test_data_are_closed_to_other_users(root, packages):
    installed(root, packages[0])
    root.start()
    assert root.run("su", "nobody", "-s", "/bin/sh", "-c", "ls /var/lib/headwater", status=2)
    assert root.run("su", "nobody", "-s", "/bin/sh", "-c", "cat /etc/headwater/*", status=1)


def script(root, *words, status=0):
    return root.run("sh", "/install.sh", *words, status=status)


def test_the_script_installs_updates_and_goes_back_without_a_network(root, wheel_folder, tmp_path):
    from tests.compose.engine import ROOT

    root.copy(ROOT / "deploy/pi/install.sh", "install.sh")
    for wheel in wheel_folder.glob("*.whl"):
        root.copy(wheel, f"wheels/{wheel.name}")
    assert "install.sh --wheels" in script(root, "--help")
    script(root, "--what", status=2)
    script(root, "--wheels", "/nowhere", status=2)
    told = script(root, "--wheels", "/wheels", "--name", "pi3")
    assert "done      install Headwater 0.1.0-" in told
    root.start()
    assert root.asked("/v1/status")["broker"] == "pi3"
    submit_and_detect(root, 1_700_000_000_000)
    root.end()
    current = root.place / "opt/headwater/current"
    version = current.readlink()
    assert "as it is  Headwater 0.1.0-" in script(root, "--wheels", "/wheels")
    assert current.readlink() == version
    script(root, "--back", status=1)

    # Of wheels that are for another machine nothing is switched to.
    broken = next(root.place.glob("wheels/msgspec-*.whl"))
    kept = broken.read_bytes()
    broken.rename(broken.with_name(broken.name.replace("x86_64", "aarch64")))
    assert "the wheels do not fit" in script(root, "--wheels", "/wheels", status=1)
    assert current.readlink() == version
    next(root.place.glob("wheels/msgspec-*.whl")).unlink()
    broken.write_bytes(kept)

    # Another version of anything that is needed is an update, and there is a way back from it.
    (root.place / "wheels/empty-1-py3-none-any.whl").write_bytes(b"")
    later = script(root, "--wheels", "/wheels")
    assert f"updated from {version}" in later
    assert current.readlink() != version
    root.start()
    assert root.subscriptions() == ["Frost"]
    root.end()
    assert f"back at {version}" in script(root, "--back")
    root.start()
    assert root.subscriptions() == ["Frost"]
    root.end()
    script(root, "--uninstall")
    assert not (root.place / "opt/headwater").exists()
    assert (root.place / "var/lib/headwater/broker").is_dir(), "data stay"

"""A broker is installed once, whoever asks twice; a configuration is never written over."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from headwater.cli import main
from headwater.installing.install_root import InstallError, InstallRoot
from headwater.installing.steps import CONFIG, DATA, UNIT, USER, ServiceWish, installation, removal
from headwater.installing.unit import unit_text

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may own files to others")
PRIVATE_PROGRAM = str(PurePosixPath("/home", "me", "headwater"))
WISH = ServiceWish("/usr/bin/headwater", "pi3")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    return tmp_path


@pytest.fixture
def program(monkeypatch):
    """Headwater where systems have programs, wherever these tests run."""
    monkeypatch.setattr("headwater.cli.brokers.broker_install._program", lambda: WISH.program)


class Programs:
    """Plays the programs that are run: `useradd` and `userdel` change the list of users."""

    def __init__(self, root):
        self.passwd = root / "etc/passwd"
        self.ran = []

    def __call__(self, words):
        self.ran.append(tuple(words))
        lines = self.passwd.read_text().splitlines()
        if words[0] == "useradd":
            lines.append(f"{words[-1]}:x:{os.getuid()}:{os.getgid()}::{DATA}:/usr/sbin/nologin")
        elif words[0] == "userdel":
            lines = [line for line in lines if not line.startswith(f"{words[-1]}:")]
        self.passwd.write_text("\n".join(lines) + "\n")
        return 0


def carried_out(steps):
    """The sentences of what was not done yet, now done."""
    did = []
    for step in steps:
        if not step.is_done():
            step.do()
            did.append(step.sentence)
            assert step.is_done(), step.sentence
    return did


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_broker_is_installed_once(root):
    machine = InstallRoot(root, Programs(root))
    assert len(carried_out(installation(machine, WISH))) == 5
    assert mode_of(root / "var/lib/headwater") == mode_of(root / "etc/headwater") == 0o750
    assert mode_of(root / "etc/headwater/broker.toml") == 0o640
    assert "ExecStart=/usr/bin/headwater broker --config /etc/headwater/broker.toml\n" in (
        machine.text(UNIT) or ""
    )
    assert carried_out(installation(machine, WISH)) == []


def test_a_configuration_that_is_there_is_kept_and_a_unit_is_renewed(root):
    machine = InstallRoot(root, Programs(root))
    carried_out(installation(machine, WISH))
    machine.at(CONFIG).write_text("# mine\n")
    again = carried_out(installation(machine, ServiceWish("/opt/headwater/bin/headwater")))
    assert again == [f"write systemd's unit to {UNIT}"]
    assert machine.text(CONFIG) == "# mine\n"


def test_the_configuration_is_one_that_a_broker_takes(root, capsys):
    machine = InstallRoot(root, Programs(root))
    carried_out(installation(machine, WISH))
    path = str(machine.at(CONFIG))
    assert main(["config", "show", "--config", path]) == 0
    shown = capsys.readouterr().out
    assert 'name = "pi3"' in shown
    assert f'data_dir = "{DATA}/broker"' in shown


def test_what_is_uninstalled_leaves_its_data_until_it_is_purged(root):
    machine = InstallRoot(root, Programs(root))
    carried_out(installation(machine, WISH))
    (root / "var/lib/headwater/broker").mkdir()
    assert carried_out(removal(machine, purge=False)) == [f"remove {UNIT}: systemd's unit"]
    assert (root / "var/lib/headwater/broker").is_dir()
    assert machine.text(CONFIG) is not None
    assert len(carried_out(removal(machine, purge=True))) == 3
    assert not (root / "var/lib/headwater").exists()
    assert machine.ids_of(USER) is None
    assert carried_out(removal(machine, purge=True)) == []


def test_what_cannot_be_done_is_said(root):
    machine = InstallRoot(root, lambda _words: 9)
    with pytest.raises(InstallError, match=r"`useradd .*` failed with status 9"):
        carried_out(installation(machine, WISH))
    (root / "blocked").write_text("")
    with pytest.raises(InstallError, match="/blocked/unit cannot be written: "):
        machine.write(PurePosixPath("/blocked/unit"), "x", 0o644, "root:root")
    with pytest.raises(InstallError, match="/blocked/data cannot be made: "):
        machine.make(PurePosixPath("/blocked/data"), 0o750, "root:root")
    with pytest.raises(InstallError, match="cannot be run: "):
        InstallRoot(root).run(str(root / "no-program"))


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(root):
    machine = InstallRoot(root, Programs(root))
    carried_out(installation(machine, WISH))
    folder = machine.at(UNIT).parent
    draft = folder / f".{UNIT.name}.new"
    draft.mkdir()
    with pytest.raises(InstallError, match="cannot be written: "):
        machine.write(UNIT, "half", 0o644, "root:root")
    assert "[Service]" in (machine.text(UNIT) or "")


@pytest.mark.usefixtures("program")
def test_a_dry_run_changes_nothing(root, capsys):
    words = ["broker", "install", "--name", "pi3", "--root", str(root), "--dry-run"]
    before = sorted(root.rglob("*"))
    assert main(words) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 5
    assert all(line.startswith("to do ") for line in told)
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("words", [["--name", "a/b"], ["--root", "/nowhere/at/all"]])
def test_what_cannot_be_meant_is_refused(words, capsys):
    assert main(["broker", "install", *words, "--dry-run"]) == 2
    assert words[1] in capsys.readouterr().err


def test_only_root_installs(root, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    for verb in ("install", "uninstall"):
        assert main(["broker", verb, "--root", str(root)]) == 2
        assert "only root may do this; --dry-run" in capsys.readouterr().err


def test_a_program_in_somebodys_home_is_refused(root, monkeypatch, capsys):
    """The unit closes homes, so systemd would not find it."""
    monkeypatch.setattr("headwater.cli.brokers.broker_install._program", lambda: PRIVATE_PROGRAM)
    assert main(["broker", "install", "--root", str(root), "--dry-run"]) == 2
    assert f"the service cannot read {PRIVATE_PROGRAM}" in capsys.readouterr().err


@needs_root
@pytest.mark.usefixtures("program")
@pytest.mark.program("useradd")
def test_in_a_root_of_its_own_it_is_installed_and_taken_away(root, capsys):
    """With the real programs for users; systemd runs in no folder."""
    for name in ("group", "shadow", "gshadow", "login.defs"):
        (root / "etc" / name).write_text("")
    words = ["--root", str(root)]
    assert main(["broker", "install", "--name", "pi3", *words]) == 0
    assert "no systemd runs here" in capsys.readouterr().out
    ids = InstallRoot(root).ids_of(USER)
    assert ids is not None
    assert (root / "var/lib/headwater").stat().st_uid == ids[0] > 0
    config = (root / "etc/headwater/broker.toml").stat()
    assert (config.st_uid, config.st_gid) == (0, ids[1]), "the broker reads and may not write it"
    assert main(["broker", "install", *words]) == 0
    assert {line[:8] for line in capsys.readouterr().out.splitlines()[:5]} == {"as it is"}
    assert main(["broker", "uninstall", "--purge", *words]) == 0
    assert InstallRoot(root).ids_of(USER) is None
    assert not (root / "etc/headwater").exists()


@pytest.mark.program("systemd-analyze")
def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path):
    """Its own scale goes from 0, all closed, to 10; what has no hardening has 9.6."""
    unit = tmp_path / "headwater.service"
    program = shutil.which("true")
    unit.write_text(unit_text(str(program), Path("/etc/x.toml"), Path("/var/lib"), "daemon"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(unit)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout[-400:]


def test_the_program_of_the_unit_is_the_one_that_was_typed(root, capsys, monkeypatch):
    """A name alone, as `python -m headwater` gives it, is none that systemd finds."""
    monkeypatch.setattr("headwater.cli.brokers.broker_install.HOMES", ("/nobody/",))
    monkeypatch.setattr(sys, "argv", ["-m"])
    steps = []
    monkeypatch.setattr(
        "headwater.cli.brokers.broker_install.installation",
        lambda _machine, wish: steps.append(wish) or [],
    )
    assert main(["broker", "install", "--root", str(root), "--dry-run"]) == 0
    program = root / "headwater"
    program.write_text("")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert main(["broker", "install", "--root", str(root), "--dry-run"]) == 0
    assert [wish.program for wish in steps] == [f"{sys.executable} -m headwater", str(program)]

"""What a process uses and may use, as the system's files tell it."""

import pytest

from broker.site.power import granted_ms_per_s
from broker.site.usage import usage


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "memory", "cpus"),
    [
        ({"memory.max": "268435456\n", "cpu.max": "50000 100000\n"}, 268_435_456, 0.5),
        ({"memory.max": "max\n", "cpu.max": "max 100000\n"}, None, None),
        (
            {
                "memory/memory.limit_in_bytes": "1048576\n",
                "cpu/cpu.cfs_quota_us": "200000\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            1_048_576,
            2.0,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "cpu/cpu.cfs_quota_us": "-1\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
            None,
        ),
        ({}, None, None),
    ],
)
def test_limits_are_those_of_the_control_group_of_either_version(files, memory, cpus, tmp_path):
    used = usage(tmp_path, write(tmp_path / "cgroup", files))
    assert (used.get("memory_bytes_max"), used.get("cpus")) == (memory, cpus)
    assert "memory_bytes" not in used
    assert used["cpu_s"] > 0


def test_memory_is_what_is_resident(tmp_path):
    write(tmp_path, {"status": "Name:\tpython\nVmRSS:\t   66000 kB\nVmData: 9 kB\n"})
    assert usage(tmp_path, tmp_path)["memory_bytes"] == 66_000 * 1024
    assert usage()["memory_bytes"] > 2**20


GROUPS = "5:memory:/a/b\n4:cpu,cpuacct:/a/b\n1:name=systemd:/a\n0::/a/b\n"


@pytest.mark.parametrize(
    ("files", "memory", "cpus"),
    [
        ({"a/b/cpu.max": "30000 100000\n", "a/b/memory.max": "4096\n"}, 4_096, 0.3),
        ({"a/b/cpu.max": "max 100000\n", "a/cpu.max": "20000 100000\n"}, None, 0.2),
        ({"a/b/cpu.max": "90000 100000\n", "a/cpu.max": "20000 100000\n"}, None, 0.2),
        ({"a/b/memory.max": "max\n", "a/memory.max": "8192\n"}, 8_192, None),
        (
            {
                "cpu/a/b/cpu.cfs_quota_us": "10000\n",
                "cpu/a/b/cpu.cfs_period_us": "100000\n",
                "memory/a/memory.limit_in_bytes": "1048576\n",
            },
            1_048_576,
            0.1,
        ),
        ({"c/cpu.max": "10000 100000\n"}, None, None),
    ],
)
def test_limits_are_the_least_of_the_own_group_and_those_above(files, memory, cpus, tmp_path):
    """A systemd unit's limits lie at its own group, which the root does not show."""
    proc = write(tmp_path / "proc", {"cgroup": GROUPS})
    used = usage(proc, write(tmp_path / "cgroup", files))
    assert (used.get("memory_bytes_max"), used.get("cpus")) == (memory, cpus)


@pytest.mark.parametrize("path", ["/docker/outside", "/../beside", ""])
def test_a_path_that_is_not_there_leaves_the_root(path, tmp_path):
    proc = write(tmp_path / "proc", {"cgroup": f"0::{path}\nnonsense\n"})
    groups = write(tmp_path / "cgroup", {"cpu.max": "50000 100000\n"})
    write(tmp_path / "beside", {"cpu.max": "10000 100000\n"})
    assert usage(proc, groups)["cpus"] == 0.5


@pytest.mark.parametrize(
    ("limit", "granted"),
    [("25000 100000", 250), ("400000 100000", 1_000), ("max 100000", 1_000), ("1 1000000", 1)],
)
def test_one_thread_is_granted_what_the_group_has_and_one_processor_at_most(
    limit, granted, tmp_path
):
    groups = write(tmp_path / "cgroup", {"cpu.max": f"{limit}\n"})
    assert granted_ms_per_s(tmp_path, groups) == granted

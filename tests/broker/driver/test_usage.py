"""What a process uses and may use, as the system's files tell it."""

import pytest

from broker.driver.usage import usage


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

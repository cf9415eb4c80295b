"""What the process uses, and what its control group lets it use.

Owns the reading of the system's files. Must not know who looks. Invariant: what cannot be read is
left out, and nothing here raises.
"""

from pathlib import Path
from time import process_time

PROC = Path("/proc/self")
CGROUP = Path("/sys/fs/cgroup")
UNLIMITED = 2**60  # control groups of version 1 write some number near 2**63 for no limit


def usage(proc: Path = PROC, cgroup: Path = CGROUP) -> dict[str, float]:
    """Return `cpu_s`, used so far, and `memory_bytes`; `cpus` and `memory_bytes_max` if limited.

    The limits are those of the control group that the process sees: of either version, as in a
    container or a systemd unit with limits.
    """
    used: dict[str, float] = {"cpu_s": round(process_time(), 3)}
    resident = _number(proc / "status", "VmRSS:")
    if resident is not None:
        used["memory_bytes"] = resident * 1024
    limit = _limit(cgroup)
    if limit is not None:
        used["memory_bytes_max"] = limit
    cpus = _cpus(cgroup)
    if cpus is not None:
        used["cpus"] = cpus
    return used


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path, key: str) -> int | None:
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == key and words[1].isdigit():
            return int(words[1])
    return None


def _limit(cgroup: Path) -> int | None:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _text(cgroup / name).strip()
        if text.isdigit() and int(text) < UNLIMITED:
            return int(text)
    return None


def _cpus(cgroup: Path) -> float | None:
    words = _text(cgroup / "cpu.max").split()
    if len(words) != 2:
        words = [
            _text(cgroup / "cpu" / name).strip()
            for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        ]
    if all(word.isdigit() for word in words) and int(words[1]):
        return int(words[0]) / int(words[1])
    return None  # `max`, or -1 in version 1

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

    The limits are the least of the control group of the process and of all groups above it, of
    either version: as in a container, or in a systemd unit with limits.
    """
    used: dict[str, float] = {"cpu_s": round(process_time(), 3)}
    resident = _number(proc / "status", "VmRSS:")
    if resident is not None:
        used["memory_bytes"] = resident * 1024
    limit = _limit(proc, cgroup)
    if limit is not None:
        used["memory_bytes_max"] = limit
    cpus = _cpus(proc, cgroup)
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


def _groups(proc: Path, cgroup: Path, controller: str) -> list[Path]:
    """Return the folders of the process's group and of those above it.

    In a container the path may be that outside, which is not there: the root alone counts then.
    """
    paths = {"": "/", controller: "/"}  # by controller; the single tree of version 2 has no name
    for line in _text(proc / "cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for name in controllers.split(","):
            if name in paths and ".." not in Path(path).parts:
                paths[name] = path
    folders = []
    for name, path in paths.items():
        group = Path(path.lstrip("/"))
        folders += [cgroup / name / level for level in (group, *group.parents)]
    return list(dict.fromkeys(folders))


def _limit(proc: Path, cgroup: Path) -> int | None:
    texts = [
        _text(group / name).strip()
        for group in _groups(proc, cgroup, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    limits = [int(text) for text in texts if text.isdigit()]
    return min((limit for limit in limits if limit < UNLIMITED), default=None)


def _cpus(proc: Path, cgroup: Path) -> float | None:
    shares = []
    for group in _groups(proc, cgroup, "cpu"):
        words = _text(group / "cpu.max").split() or [
            _text(group / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        ]
        # `max`, or -1 in version 1, is no limit.
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            shares.append(int(words[0]) / int(words[1]))
    return min(shares, default=None)

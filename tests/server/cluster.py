"""A standalone Spark cluster of one machine, for tests: a master and a worker of its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from server.java import java_home

PATIENCE_S = 180.0


def bare_python(folder):
    """A Python with what Spark needs and nothing of ours, which is there by a file of paths."""
    import pyspark

    script = folder / "bare-python"
    packages = Path(pyspark.__file__).parent.parent
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n'
    )
    script.chmod(0o755)
    return script


class Cluster:
    """Processes in groups of their own; `url` is the master's."""

    def __init__(self, folder):
        import pyspark

        self.folder = folder
        self.home = Path(pyspark.__file__).parent
        self.processes = []
        self.url = ""

    def __enter__(self):
        try:
            master = self._start(
                "master", "deploy.master.Master", "--host", "127.0.0.1", "--port", "0"
            )
            self.url = self._said(master, r"Starting Spark master at (spark://\S+)")
            self.node = self._start(
                "worker",
                "deploy.worker.Worker",
                *("--host", "127.0.0.1", "--cores", "2", "--memory", "1g"),
                *("--work-dir", str(self.folder / "work"), self.url),
            )
            self._said(self.node, r"(Successfully registered with master)")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            for one in [*descendants(process.pid), process.pid]:
                kill(one)
            process.wait(PATIENCE_S)

    def _start(self, name, part, *words):
        environ = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        environ.pop("PYTHONPATH", None)  # executors have nothing of ours
        with (self.folder / f"{name}.log").open("wb") as said:
            process = subprocess.Popen(
                [
                    self.home / "bin" / "spark-class",
                    f"org.apache.spark.{part}",
                    *words,
                    *("--webui-port", "0"),
                ],
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        process.log = self.folder / f"{name}.log"
        self.processes.append(process)
        return process

    def _said(self, process, pattern):
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, process.log.read_text())) is None:
            assert process.poll() is None, process.log.read_text()
            assert time.monotonic() < deadline, f"never: {pattern}\n{process.log.read_text()}"
            time.sleep(0.05)
        return found[1]

    def executors(self):
        """The processes of executors that run at the moment."""
        return [one for one in descendants(self.node.pid) if b"ExecutorBackend" in command_of(one)]

    def kill_executor(self):
        """Kill one, with the Python beneath it; whether there was one."""
        for one in self.executors():
            for below in [*descendants(one), one]:
                kill(below)
            return True
        return False


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def descendants(pid):
    """All processes beneath one."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        below = [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except OSError:
        return []
    return [one for child in below for one in (*descendants(child), child)]


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

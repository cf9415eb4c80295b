"""mosquitto's clients as processes that are watched line by line, for tests of a whole broker.

A program that writes to a pipe keeps its lines to itself until it ends, so these write to a
pseudo-terminal: a test can then wait for "Subscribed" instead of for a while.
"""

import os
import pty
import select
import shutil
import signal
import subprocess
import time
import tty

PATIENCE_S = 10.0  # for what takes well under a second
GOT = "got "  # begins the line of a message


class Watched:
    """A running program; what it has said is in `lines`."""

    def __init__(self, name, *arguments):
        self.lines = []
        self._untaken = []
        self._rest = b""
        self._mine, theirs = pty.openpty()
        tty.setraw(theirs)
        self.process = subprocess.Popen(
            [shutil.which(name), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        os.close(self._mine)

    def line(self, *holding):
        """The next line that holds one of these texts; messages before it are still to be taken."""
        while True:
            found = self._next()
            assert found is not None, f"it ended without any of {holding} after {self.lines}"
            if any(text in found for text in holding):
                return found

    def messages(self, count):
        """The next messages, each in the form that was asked for."""
        while len(self._untaken) < count:
            assert self._next() is not None, f"it ended after {self.lines}"
        taken, self._untaken = self._untaken[:count], self._untaken[count:]
        return taken

    def rest(self):
        """Wait for its end; its exit status and the messages that were not taken."""
        while self._next() is not None:
            pass
        return self.process.wait(PATIENCE_S), self._untaken

    def end(self):
        """Ask it to end, as Ctrl-C does; see `rest`."""
        self.process.send_signal(signal.SIGINT)
        return self.rest()

    def kill(self):
        """End it without a word to the broker."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def _next(self):
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._mine], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"nothing more came after {self.lines}"
            try:
                data = os.read(self._mine, 65536)
            except OSError:  # so says a pseudo-terminal whose other end is closed
                return None
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        said = line.decode().rstrip("\r")
        self.lines.append(said)
        if said.startswith(GOT):
            self._untaken.append(said.removeprefix(GOT))
        return said


def subscriber(port, *arguments, form="%t|%q|%r|%p"):
    """A mosquitto_sub that is subscribed."""
    program = Watched(
        *("mosquitto_sub", "-h", "127.0.0.1", "-p", port, "-d", "-W", int(PATIENCE_S)),
        *("-F", GOT + form, *arguments),
    )
    try:
        program.line("Subscribed (")
    except BaseException:
        program.__exit__()
        raise
    return program


def run(name, port, *arguments, lines=None):
    """A program of mosquitto's that ends by itself: exit status, output, errors."""
    done = subprocess.run(
        [shutil.which(name), "-h", "127.0.0.1", "-p", str(port), *map(str, arguments)],
        input=lines,
        stdin=subprocess.DEVNULL if lines is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def publish(port, *arguments, lines=None):
    """Publish with mosquitto_pub; what it said of its connection."""
    status, output, errors = run("mosquitto_pub", port, "-d", *arguments, lines=lines)
    assert status == 0, errors
    return output + errors

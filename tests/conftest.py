"""What all tests share: how a missing program is handled, and how generated cases are drawn.

A test that talks to an external program says so with ``@pytest.mark.program("mosquitto")`` or asks
the fixture ``find_program``. Where the program is missing the test is skipped with the reason, and
where HEADWATER_REQUIRE_PROGRAMS=1 is set (continuous integration) any skip fails the run.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from broker.engine import native
from tests.printed import generated_tables, planted_table, told

# Debian keeps servers out of an ordinary user's PATH.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
LONGEST = ("tests/server/test_on_spark.py", "tests/simulation/", "tests/test_engine")
SKIPS_FAIL = os.environ.get("HEADWATER_REQUIRE_PROGRAMS") == "1"

# The secret of links between a user's own brokers is made there: not among the files of whoever
# runs the tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="headwater-state-")
os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"]  # where contexts are kept

_calm = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=50, derandomize=True, database=None, **_calm)
settings.register_profile("long", max_examples=1000, print_blob=True, **_calm)


def require_program(name: str) -> str:
    """The path of the program, or the test is skipped with the reason."""
    found = shutil.which(name, path=SEARCH_PATH)
    if found is None:
        pytest.skip(f"the program {name} is not installed")
    return found


@pytest.fixture
def find_program() -> Callable[[str], str]:
    return require_program


@pytest.fixture(scope="module", params=["compiled", "python"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module's tests with the compiled passes and without; of a module, for hypothesis' sake."""
    passes = native.passes
    if request.param == "compiled" and passes is None:
        pytest.skip("the passes are not compiled")
    native.passes = passes if request.param == "compiled" else None
    yield
    native.passes = passes


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.option.markexpr == "long" else "fast")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest at a time, so that nobody waits for it at the end."""
    items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in LONGEST])


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("program"):
        for name in mark.args:
            require_program(name)


def _skips_that_fail(config: pytest.Config) -> int:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return len(reporter.stats.get("skipped", [])) if SKIPS_FAIL and reporter else 0


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With xdist only the controlling process has a reporter, and it has every report."""
    if _skips_that_fail(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With xdist too: reports bring along what tests told in the processes that ran them."""
    reports = [one for many in terminalreporter.stats.values() for one in many]
    for what, lines in generated_tables(told(reports, "generated")):
        terminalreporter.section(f"generated cases: {what}")
        terminalreporter.write_line("\n".join(lines))
    planted = told(reports, "planted")
    if planted:
        terminalreporter.section("planted faults")
        terminalreporter.write_line("\n".join(planted_table(planted)))
    skipped = _skips_that_fail(terminalreporter.config)
    if skipped:
        terminalreporter.section("nothing may be skipped here", red=True)
        terminalreporter.line(
            f"{skipped} skipped although HEADWATER_REQUIRE_PROGRAMS=1 is set; "
            "install what they name above"
        )

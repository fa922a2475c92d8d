"""What all tests share: what is kept for a user (a signing key, built libraries) goes to a folder of the tests' own.

With several workers the longest begin first; ``ordering.py`` says how, and how it is measured.

On a busy machine any wait can be too short: ``reruns.py`` says which tests are run once more when they fail, and no
example of hypothesis's has a deadline.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import ordering
from reruns import pytest_collection_modifyitems, pytest_runtest_logstart  # noqa: F401  (hooks)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so do runners start us that work in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # and so nohup: what we start would take no notice of it either
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes are started: each would compile all it imports
settings.register_profile("busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
gc.disable()  # until all tests are collected: until then next to nothing is thrown away


@pytest.fixture(scope="session", autouse=True)
def data_home() -> Iterator[None]:
    """Nothing of the user's is used or changed, by commands in processes of their own neither."""
    with tempfile.TemporaryDirectory(prefix="mcpgym-tests-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", folder)
        patch.setenv("MCPGYM_CACHE", f"{folder}/cache")
        patch.delenv("MCPGYM_SIGNING_KEY", raising=False)
        yield


def shared_by_workers(config: pytest.Config) -> Path:
    base: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return (base.parent if hasattr(config, "workerinput") else base) / "shared"


@pytest.fixture(scope="session")
def shared_folder(pytestconfig: pytest.Config) -> Path:
    """A folder that all workers have, for what is large and made once, under a lock. It goes at the end."""
    folder = shared_by_workers(pytestconfig)
    folder.mkdir(exist_ok=True)
    return folder


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Half a gigabyte of models is not kept for later looks, as what else tests write is."""
    if not hasattr(session.config, "workerinput"):
        shutil.rmtree(shared_by_workers(session.config), ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-seconds", action="store_true", help="write to tests/seconds.txt how long units took")


def pytest_collection_finish() -> None:
    """What thousands of tests and all that they import consist of is looked through by no collection of garbage.

    pytest hangs its handlers, six times a test, on each logger that passes nothing on to the root; PyTorch has dozens
    of them, which took more time than most tests. Here they pass on what they log, and the handlers hang on the root.
    """
    for logger in logging.getLogger().manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True
    gc.enable()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--record-seconds"):
        reports = [each for group in terminalreporter.stats.values() for each in group if hasattr(each, "duration")]
        ordering.record((report.nodeid, report.duration) for report in reports)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out units, the longest first; a ``--dist`` that was chosen stays."""
    from xdist.scheduler import LoadScopeScheduling

    if config.getoption("dist") != "load":  # what -n chooses
        return None
    seconds = ordering.recorded()

    class LongestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ordering.unit(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            self.workqueue.move_to_end(ordering.longest_first(self.workqueue, seconds)[0], last=False)
            super()._assign_work_unit(node)

    return LongestFirst(config, log)

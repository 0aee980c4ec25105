import itertools
import os
import shutil
import signal
import sys
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# No examples stand in this file; that of the package has the same name.
collect_ignore = ["conftest.py"]

# The same examples in every run, however slow the machine.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("fixed")

# Pictures are drawn on no screen.
os.environ["MPLBACKEND"] = "Agg"

# Most of the time of tests that write files goes into flushing them to a disk; memory is faster.
if os.path.ismount("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4e9:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# A shell may start background jobs deaf to Ctrl-C, which tests press; their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Unseeded:
    """Generators that nobody gave a seed: the same in every run of a test, one after another."""

    def __init__(self):
        self.make = np.random.default_rng
        self.entropy = [0, 0]

    def start(self, name):
        """Begin the draws of a test or of a fixture; return where those before have got to."""
        before, self.entropy = self.entropy, [zlib.crc32(name.encode()), 0]
        return before

    def default_rng(self, seed=None):
        if seed is None:
            self.entropy[1] += 1
            seed = tuple(self.entropy)
        return self.make(seed)


UNSEEDED = Unseeded()
np.random.default_rng = UNSEEDED.default_rng


def pytest_make_parametrize_id(val, argname):
    """Names hold no bytes: those of packed files tell the time, and workers must agree."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    UNSEEDED.start(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    before = UNSEEDED.start(f"{fixturedef.baseid}::{fixturedef.argname}")
    try:
        return (yield)
    finally:
        UNSEEDED.entropy = before


def pytest_terminal_summary(terminalreporter):
    """Seconds by room, with --durations."""
    if terminalreporter.config.option.durations is None:
        return
    rooms = Counter()
    for report in itertools.chain(*terminalreporter.stats.values()):
        if hasattr(report, "duration"):
            rooms["/".join(report.nodeid.split("::")[0].split("/")[:3])] += report.duration
    terminalreporter.section("seconds by room")
    for room, seconds in rooms.most_common(25):
        terminalreporter.write_line(f"{seconds:9.1f} {room}")


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def spawned():
    """One pool for all tests: each start of a process imports everything anew."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="session")
def shared_data():
    """Folder of the real corpora."""
    default = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("POLYABAYES_DATA", default))
    if not (folder / "ap.ldac.gz").is_file():
        pytest.skip(f"no real corpora in {folder}; set POLYABAYES_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def shared_vectors():
    """Folder of exact values that were computed elsewhere."""
    default = Path(__file__).parents[2].parent / "shared" / "vectors"
    folder = Path(os.environ.get("POLYABAYES_VECTORS", default))
    if not (folder / "toy_matrices.json").is_file():
        pytest.skip(f"no exact values in {folder}; set POLYABAYES_VECTORS to their folder")
    return folder


@pytest.fixture
def write(tmp_path):
    """Write a file of this name and content and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write

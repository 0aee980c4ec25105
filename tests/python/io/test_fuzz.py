"""A short run of the fuzzer and of the faults of the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[3] / "fuzz"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["fuzz.py", "--seconds", "30", "--seed", "1"], ["faults.py", "--rounds", "8", "--seed", "1"]],
)
def test_nothing_is_found(command):
    run = subprocess.run(
        [sys.executable, str(FUZZ / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr

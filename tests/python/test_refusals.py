"""The table of refusals: each call, with the constants of the tests of its room, and its error."""

import gzip
import importlib.util
import math
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes import exceptions

HERE = Path(__file__).parent


def rows():
    """Module of tests, call, names of the errors and the pattern of the message."""
    for line in (HERE / "refusals.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line:
            call, _, told = line.rpartition("  # ")
            yield module, call, *told.split(": ", 1)


ROWS = [*rows()]


@cache
def constants(module):
    spec = importlib.util.spec_from_file_location(f"of_{Path(module).name}", HERE / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    common = {"Path": Path, "np": np, "pb": pb, "pd": pd, "errors": exceptions, "partial": partial}
    return {**common, "gzip": gzip, "math": math, **vars(loaded)}


@pytest.mark.parametrize(("module", "call", "kinds", "message"), ROWS)
def test_a_bad_argument_is_refused(module, call, kinds, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    errors = tuple(getattr(exceptions, kind) for kind in kinds.split("|"))
    assert_refused(errors, message or ".", eval, call, constants(module))

"""Names that examples in docstrings use without defining them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyabayes as pb


@pytest.fixture(autouse=True)
def _names_of_examples(doctest_namespace: dict[str, Any], tmp_path: Path) -> Iterator[None]:
    """The package, NumPy, a model of two topics over four words, and an empty folder."""
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.1,
        topic_word=[[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]],
        random_state=0,
    )
    doctest_namespace.update(pb=pb, np=np, model=model, folder=tmp_path)
    yield
    # Figures that examples have drawn.
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

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
    """The package, NumPy, models of two topics over four and two words, counts, an empty folder.

    And answers of 30 rows to three items, in two classes.
    """
    topics = [[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]]
    models = {
        str(prior): pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=prior, topic_word=topics, random_state=0
        )
        for prior in (0.1, 1.0)
    }
    doctest_namespace.update(pb=pb, np=np, model=models["0.1"], models=models, folder=tmp_path)
    doctest_namespace.update(counts=[[4, 3, 0], [0, 0, 3], [0, 0, 3]])
    doctest_namespace.update(answers=[[0, 0, 1]] * 20 + [[1, 1, 0]] * 10)
    doctest_namespace["lda"] = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.1, topic_word=[[0.9, 0.1], [0.1, 0.9]], random_state=0
    )
    yield
    # Figures that examples have drawn.
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

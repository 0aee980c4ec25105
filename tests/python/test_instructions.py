"""The same bits with the instructions of every processor, by the switch POLYABAYES_SIMD."""

import os
from pathlib import Path

import pytest

from helpers.processes import python

# Golden values of every method, EM with many digits that could differ, and large counts.
PROGRAM = """
import test_golden
import polyabayes as pb

for case in test_golden.CASES:
    print(case, *(value.hex() for value in test_golden.compute(case)))
corpus = pb.datasets.make_lda_corpus(60, 400, 12, document_length=80, random_state=0).corpus
runs = ("em", 10, 1), ("gibbs", 10, 1), ("gibbs", 90, 1), ("gibbs", 10, 30)
for method, topics, factor in runs:
    lda = pb.LatentDirichletAllocation(topics, fit_method=method, max_iter=12, random_state=0)
    print(method, topics, lda.fit(factor * corpus.counts).components_.tobytes().hex())
"""
# The C library of Linux then rounds exp and ln otherwise; other systems do not read it.
NO_FMA = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2"}


def bits(instructions, **environment):
    environment |= os.environ | {"POLYABAYES_SIMD": instructions}
    done = python("-c", PROGRAM, env=environment, cwd=Path(__file__).parent)
    if f"POLYABAYES_SIMD={instructions}: must be" in done.stderr:
        pytest.skip(f"this processor lacks {instructions}")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def portable():
    return bits("portable")


@pytest.mark.parametrize("instructions", ["avx2", "avx512"])
def test_instructions_give_the_same_bits(instructions, portable):
    assert bits(instructions) == portable


def test_em_does_not_depend_on_the_c_library(portable):
    def em(output):
        return [line for line in output.splitlines() if line.startswith(("em", "lda, EM"))]

    assert len(em(portable)) == 2
    assert em(bits("portable", **NO_FMA)) == em(portable)


@pytest.mark.parametrize("instructions", ["neon", "AVX2", ""])
def test_unknown_instructions_are_refused_at_import(instructions):
    environment = os.environ | {"POLYABAYES_SIMD": instructions}
    done = python("-c", "import polyabayes._core", env=environment)
    assert done.returncode == 1
    assert f"POLYABAYES_SIMD={instructions}: must be portable, avx2 or avx512" in done.stderr

"""Exact document likelihoods under LDA and gamma-Poisson factor analysis, to test against.

Run ``python generate.py`` to write ``documents.json`` (deterministic, standard library only).

Every parameter is read as the exact rational value of the double in the file, so rounding enters
only through the last logarithm, which is taken with 50 digits. Both models rest on the urn sum of
the document's N tokens over all assignments of tokens to topics,

    Z(w; a, q) = sum over k_1..k_N of  prod_l (a[k_l] + #{m < l: k_m = k_l}) q[k_l][w_l],

which is computed twice, with equal results: over all K^N paths, where there are few, and from the
expansion of prod_w (sum_k q[k][w] t_k)^y_w in monomials t^C, each of which then contributes its
coefficient times the rising factorials prod_k a_k (a_k + 1) .. (a_k + C_k - 1). With q = topic_word
and a = doc_topic_prior for LDA, a = shape and q as in `gamma_poisson` for the other model:

    LDA            p(ordered tokens | N) = Z / (a_+ (a_+ + 1) .. (a_+ + N - 1))
    gamma-Poisson  p(counts) = prod_k (1 - Q_k)^shape_k * Z / prod_w y_w!,   Q_k = sum_w q[k][w]

"sequence" values are for the ordered tokens, "counts" values for the bag of words, N!/prod_w y_w!
times as probable; the two names "given_length" are conditional on N, as both of LDA's are.
"""

import itertools
import json
import math
import operator
import random
from collections import Counter
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

getcontext().prec = 50
Matrix = list[list[Fraction]]


def exact(values):
    """Doubles, or lists of them, as exact fractions."""
    return [exact(v) for v in values] if isinstance(values, list) else Fraction(values)


def ln(x: Fraction) -> Decimal:
    return (Decimal(x.numerator) / Decimal(x.denominator)).ln()


def rising(a: Fraction, n: int) -> Fraction:
    return math.prod((a + i for i in range(n)), start=Fraction(1))


def orders(counts: list[int]) -> Fraction:
    return Fraction(math.factorial(sum(counts)), math.prod(map(math.factorial, counts)))


def urn_sum_of_paths(tokens: list[int], a: list[Fraction], q: Matrix) -> Fraction:
    """Return Z as it is defined, summed over all assignments of the tokens to topics."""
    total = Fraction(0)
    for path in itertools.product(range(len(a)), repeat=len(tokens)):
        seen, weight = [0] * len(a), Fraction(1)
        for k, w in zip(path, tokens, strict=True):
            weight *= (a[k] + seen[k]) * q[k][w]
            seen[k] += 1
        total += weight
    return total


def urn_sum_of_monomials(tokens: list[int], a: list[Fraction], q: Matrix) -> Fraction:
    """Return Z from the polynomial prod_w (sum_k q[k][w] t_k)^y_w, kept as {exponents: value}."""
    polynomial = {(0,) * len(a): Fraction(1)}
    for w in tokens:
        product = Counter()
        for powers, value in polynomial.items():
            for k in range(len(a)):
                product[(*powers[:k], powers[k] + 1, *powers[k + 1 :])] += value * q[k][w]
        polynomial = product
    table = [[rising(x, n) for n in range(len(tokens) + 1)] for x in a]
    weights = (math.prod(table[k][n] for k, n in enumerate(c)) for c in polynomial)
    return sum(map(operator.mul, polynomial.values(), weights), start=Fraction(0))


def urn_sum(counts: list[int], a: list[Fraction], q: Matrix) -> Fraction:
    tokens = [w for w, y in enumerate(counts) for _ in range(y)]
    z = urn_sum_of_monomials(tokens, a, q)
    assert z > 0, "the document must be possible"
    assert len(a) ** len(tokens) > 20_000 or z == urn_sum_of_paths(tokens, a, q)
    return z


def lda_sequence(counts: list[int], alpha: list[Fraction], phi: Matrix) -> Fraction:
    return urn_sum(counts, alpha, phi) / rising(sum(alpha), sum(counts))


def length_weight(n: int, shape: list[Fraction], Q: list[Fraction]) -> Fraction:
    """[z^n] prod_k (1 - Q_k z)^-shape_k, which is P(N = n) / prod_k (1 - Q_k)^shape_k."""
    weights = [Fraction(1)]
    for i in range(1, n + 1):
        moments = (sum(r * x**m for r, x in zip(shape, Q, strict=True)) for m in range(1, i + 1))
        weights.append(sum(map(operator.mul, moments, reversed(weights))) / i)
    one_word = urn_sum_of_monomials([0] * n, shape, [[x] for x in Q])  # N is a count like others
    assert weights[n] == one_word / math.factorial(n)
    return weights[n]


def lda(name: str, phi: list[list[float]], alpha: list[float], counts: list[int]) -> dict:
    assert all(abs(sum(row) - 1) <= 1e-15 for row in exact(phi))
    case = {"name": f"lda-{name}", "model": "lda", "topic_word": phi, "doc_topic_prior": alpha}
    sequence = lda_sequence(counts, exact(alpha), exact(phi))
    logs = {"log_sequence": float(ln(sequence)), "log_counts": float(ln(sequence * orders(counts)))}
    return case | {"counts": counts} | logs


def gamma_poisson(name, phi, shape, probability, counts) -> dict:
    """Theta_k ~ Gamma(shape_k, scale p_k / (1 - p_k)), y_w ~ Poisson(sum_k theta_k phi[k][w])."""
    case = {"name": f"gamma-poisson-{name}", "model": "gamma-poisson", "topic_word": phi}
    case |= {"shape": shape, "probability": probability, "counts": counts}
    phi, r, p, n = exact(phi), exact(shape), exact(probability), sum(counts)
    q = [[x * f / (1 - x + x * sum(row)) for f in row] for x, row in zip(p, phi, strict=True)]
    Q = [sum(row) for row in q]
    sequence = urn_sum(counts, r, q) / math.factorial(n)  # but for the factor `empty`
    if name.startswith("nb"):  # equal p, integer shapes: a negative binomial length, then LDA
        empty = math.prod((1 - x) ** int(s) for x, s in zip(Q, r, strict=True))
        nb = rising(sum(r), n) / math.factorial(n) * p[0] ** n * (1 - p[0]) ** int(sum(r))
        assert empty * sequence == nb * lda_sequence(counts, r, phi)
    log_empty = sum(map(operator.mul, map(Decimal, shape), (ln(1 - x) for x in Q)))
    length = length_weight(n, r, Q)
    return case | {
        "log_counts": float(log_empty + ln(sequence * orders(counts))),
        "log_sequence": float(log_empty + ln(sequence)),
        "log_counts_given_length": float(ln(sequence * orders(counts) / length)),
        "log_sequence_given_length": float(ln(sequence / length)),
    }


def random_rows(rng, V, sums, zeros) -> list[list[float]]:
    """Rows of V entries with four decimals, a share of them zero; no column is zero."""
    rows = [[rng.random() * (rng.random() >= zeros) for _ in range(V)] for _ in sums]
    if not (all(map(any, rows)) and all(map(any, zip(*rows, strict=True)))):
        return random_rows(rng, V, sums, zeros)
    for k, (row, total) in enumerate(zip(rows, sums, strict=True)):
        units = [round(10_000 * x * total / math.fsum(row)) for x in row]
        units[units.index(max(units))] += round(10_000 * total) - sum(units)
        rows[k] = [u / 10_000 for u in units]
    return rows


SHARED = [  # name, K, counts, pseudo-counts (Dirichlet prior or gamma shapes), share of zeros
    ("empty", 3, [0, 0, 0, 0], [0.3, 1.7, 0.45], 0.0),
    ("empty-one-topic", 1, [0, 0], [0.6], 0.0),
    ("single-token", 3, [0, 0, 1, 0], [0.4, 0.9, 2.3], 0.0),
    ("one-topic", 1, [2, 0, 1, 3], [0.7], 0.0),
    ("one-topic-one-word", 1, [5], [1.3], 0.0),
    ("one-topic-long", 1, [12, 0, 7, 31, 1], [0.35], 0.0),
    ("one-word-vocabulary", 3, [6], [0.2, 1.1, 3.5], 0.0),
    ("repeated-word", 3, [0, 9, 0], [0.25, 0.5, 1.5], 0.0),
    ("repeated-word-two-topics", 2, [14, 0], [0.1, 0.9], 0.0),
    ("two-repeated-words", 2, [6, 0, 7], [0.33, 0.33], 0.0),
    ("all-distinct", 2, [1] * 12, [0.5, 0.5], 0.3),
    ("tiny", 3, [2, 1, 0, 3, 1], [0.01, 0.01, 0.01], 0.0),
    ("tiny-zeros", 4, [2, 3, 0, 1, 0, 1], [0.01] * 4, 0.4),
    ("big", 3, [1, 2, 2, 0, 3], [20.0, 20.0, 20.0], 0.0),
    ("tiny-and-big", 3, [3, 0, 2, 2], [0.01, 20.0, 0.7], 0.2),
    ("asymmetric", 5, [1, 2, 0, 2, 1], [0.05, 0.1, 0.4, 1.9, 6.3], 0.0),
    ("six-topics", 6, [2, 0, 1, 0, 2], [0.15] * 6, 0.3),
    ("ten-topics", 10, [1, 0, 2, 1], [0.1] * 10, 0.2),
    ("many-topics", 25, [0, 2, 1], [0.04] * 25, 0.3),
    ("two-topics-long", 2, [9, 1, 0, 17, 4, 0, 22, 7], [0.2, 1.4], 0.0),
    ("three-topics-long", 3, [4, 0, 7, 1, 1, 9, 0, 5, 3], [0.12, 0.5, 2.25], 0.2),
    ("four-topics-long", 4, [3, 2, 0, 6, 1, 0, 4, 2, 1, 5], [0.3, 0.01, 1.0, 4.5], 0.3),
    ("five-topics-long", 5, [2, 0, 5, 1, 1, 0, 3, 4], [0.2] * 5, 0.3),
]
PROBABILITIES = [0.988, 0.4, 3e-5, 0.71, 0.15, 0.93]
DISJOINT = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.25, 0.75]]
DYADIC = [[0.5, 0.25, 0.125, 0.125], [0.0, 0.25, 0.25, 0.5], [0.0625, 0.0, 0.9375, 0.0]]


def main() -> None:
    rng = random.Random(2016)
    cases = [
        lda("disjoint-topics", DISJOINT, [0.3, 0.8], [2, 1, 3, 2]),
        lda("identical-topics", [[0.2, 0.3, 0.5]] * 3, [0.3, 0.8, 0.1], [2, 1, 3]),
        gamma_poisson("disjoint-topics", DISJOINT, [0.3, 0.8], [0.6, 0.25], [2, 1, 3, 2]),
        gamma_poisson("idle-topic", DISJOINT, [0.3, 0.8], [0.6, 0.25], [3, 1, 0, 0]),
        gamma_poisson("p-near-one", DYADIC, [0.45, 1.2, 2.6], [0.988] * 3, [3, 0, 4, 1]),
        gamma_poisson("p-near-zero", DYADIC, [0.45, 1.2, 2.6], [3e-5] * 3, [3, 0, 4, 1]),
        gamma_poisson("nb-empty", DYADIC, [1.0, 2.0, 4.0], [0.3] * 3, [0, 0, 0, 0]),
        gamma_poisson("nb-two-topics", DYADIC[:2], [1.0, 3.0], [0.75] * 2, [2, 4, 0, 1]),
        gamma_poisson("nb-three-topics", DYADIC, [2.0, 1.0, 5.0], [0.1] * 3, [5, 1, 3, 2]),
    ]
    for name, K, counts, a, zeros in SHARED:
        cases.append(lda(name, random_rows(rng, len(counts), [1.0] * K, zeros), a, counts))
        sums = [0.3 + 2.2 * rng.random() for _ in range(K)]
        phi = random_rows(rng, len(counts), sums, zeros)
        p = [PROBABILITIES[(len(cases) + k) % len(PROBABILITIES)] for k in range(K)]
        cases.append(gamma_poisson(name, phi, a, p, counts))
    text = "[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n"
    Path(__file__).with_name("documents.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

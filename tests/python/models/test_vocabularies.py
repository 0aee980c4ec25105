"""Documents of several vocabularies against sums over all topics of all tokens."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp, softmax

import polyabayes as pb
from helpers.quadrature import hermite
from helpers.small_models import ln_lda
from polyabayes.exceptions import InvalidArgumentError

ENGLISH = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
GERMAN = np.array([[0.6, 0.1, 0.1, 0.2], [0.25, 0.25, 0.4, 0.1]])
WORDS = {"en": ["urn", "ball", "hotel"], "de": ["Urne", "Kugel", "hotel", "Farbe"]}
FIRST = np.array([[2, 0, 1], [0, 1, 0], [0, 0, 0]])
SECOND = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 2, 1, 0]])
ALPHA = np.array([0.4, 1.1])


def enumerated(first, second):
    """ln p of both token sequences of a document: a sum over the topics of all tokens."""
    return ln_lda([*first, *second], ALPHA, np.hstack([ENGLISH, GERMAN]))


def ln_orders(counts):
    return gammaln(counts.sum(1) + 1) - gammaln(counts + 1).sum(1)


MODEL = pb.DocumentModel.dirichlet([ENGLISH, GERMAN], ALPHA)
EXPECTED = np.array([enumerated(x, y) for x, y in zip(FIRST, SECOND, strict=True)])


def test_tokens_of_all_vocabularies_share_topic_weights():
    found = pb.log_likelihood(MODEL, [FIRST, SECOND], "exact")
    assert found.values == pytest.approx(EXPECTED, abs=1e-12)
    assert found.n_tokens.tolist() == [5, 2, 3]
    joined = pb.log_likelihood(MODEL, np.hstack([FIRST, SECOND]), "exact")
    assert np.array_equal(joined.values, found.values)
    mixed = [sparse.csr_matrix(FIRST), SECOND]
    sampled = pb.log_likelihood(MODEL, mixed, "annealed", n_samples=50, random_state=0)
    assert (np.abs(sampled.values - EXPECTED) <= 4 * sampled.std_errors + 1e-12).all()


def test_bags_have_the_orders_of_each_vocabulary():
    bags = pb.log_likelihood(MODEL, [FIRST, SECOND], event="counts").values
    assert bags == pytest.approx(EXPECTED + ln_orders(FIRST) + ln_orders(SECOND), abs=1e-12)
    # All bags of two tokens in the one and one in the other have probabilities that sum to 1.
    words = itertools.combinations_with_replacement(range(3), 2)
    twos = [np.bincount(pair, minlength=3) for pair in words]
    pairs = list(itertools.product(twos, np.eye(4, dtype=int)))
    firsts, seconds = (np.array(x) for x in zip(*pairs, strict=True))
    loadings = [np.log(ENGLISH), np.log(GERMAN)]
    normal = pb.DocumentModel.logistic_normal
    for model in (
        MODEL,
        pb.DocumentModel.mixture([ENGLISH, GERMAN], ALPHA),
        pb.DocumentModel.mixture([3 * ENGLISH, 5 * GERMAN], ALPHA, is_dirichlet=True),
        normal([ENGLISH, GERMAN], [0.2], [[1.0]]),
        normal(
            loadings, [0.2, 0.1], np.eye(2), decoder="softmax", bias=[np.ones(3), np.arange(4.0)]
        ),
    ):
        p = np.exp(pb.log_likelihood(model, [firsts, seconds], event="counts").values)
        assert p.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("event", ["sequence", "counts"])
def test_one_vocabulary_given_the_other(event):
    found = pb.log_completion(MODEL, [FIRST, None], [None, SECOND], event=event)
    alone = [enumerated(row, np.zeros(4, int)) for row in FIRST]
    expected = EXPECTED - alone + (ln_orders(SECOND) if event == "counts" else 0.0)
    assert found.values == pytest.approx(expected, abs=1e-12)


def test_logistic_normals_have_a_normaliser_for_each_vocabulary():
    loadings = [np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]), 0.5 * GERMAN]
    etas, ln_masses = hermite([0.3, 0.0], np.diag([1.5, 0.0]), 80)
    for decoder in ("mixture", "softmax"):
        tables = [ENGLISH, GERMAN] if decoder == "mixture" else loadings
        model = pb.DocumentModel.logistic_normal(tables, [0.3], [[1.5]], decoder=decoder)
        ln_p = 0.0
        for counts, table in zip((FIRST, SECOND), tables, strict=True):
            p = softmax(etas, axis=1) @ table
            ln_p = ln_p + counts @ np.log(p if decoder == "mixture" else softmax(p, axis=1)).T
        found = pb.log_likelihood(model, [FIRST, SECOND]).values
        assert found == pytest.approx(logsumexp(ln_p + ln_masses, axis=1), abs=1e-9)


def named():
    return pb.DocumentModel.dirichlet({"en": ENGLISH, "de": GERMAN}, ALPHA, vocabulary=WORDS)


def test_corpora_are_found_by_name_and_words_by_text():
    model, ids = named(), ["a", "b", "c"]
    swapped = [2, 0, 1, 3]
    english = pb.Corpus(FIRST, WORDS["en"], ids)
    german = pb.Corpus(SECOND[:, swapped], [WORDS["de"][w] for w in swapped], ids)
    for documents in ({"de": german, "en": english}, [english, german]):
        assert pb.log_likelihood(model, documents).values == pytest.approx(EXPECTED, abs=1e-12)
    assert pb.log_likelihood(model, {"en": english}).n_tokens.tolist() == [3, 1, 0]
    more = pb.Corpus(np.hstack([FIRST, FIRST]), [*WORDS["en"], "x", "y", "z"], ids)
    found = pb.log_likelihood(model, [more, german], unseen="drop")
    assert found.values == pytest.approx(EXPECTED, abs=1e-12)
    assert found.n_unseen_tokens == 4
    assert "4 tokens of unseen words left out" in repr(found)


def test_measurements_of_mudata_are_vocabularies():
    mudata, anndata = pytest.importorskip("mudata"), pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")

    def measured(counts, words, rows):
        frames = pd.DataFrame(index=rows), pd.DataFrame(index=words)
        return anndata.AnnData(counts.astype(float), *frames)

    rows = ["a", "b", "c"]
    # MuData wants different names of variables in all its parts.
    words = {"en": WORDS["en"], "de": ["Urne", "Kugel", "Hotel", "Farbe"]}
    model = pb.DocumentModel.dirichlet({"en": ENGLISH, "de": GERMAN}, ALPHA, vocabulary=words)
    parts = {"de": measured(SECOND, words["de"], rows), "en": measured(FIRST, words["en"], rows)}
    with mudata.set_options(pull_on_update=False):
        cells = mudata.MuData(parts)
    assert pb.log_likelihood(model, cells).values == pytest.approx(EXPECTED, abs=1e-12)
    parts["en"] = measured(FIRST[::-1], words["en"], rows[::-1])
    with pytest.raises(InvalidArgumentError, match="in one order"):
        pb.log_likelihood(model, parts)


def test_models_of_several_vocabularies_are_compared_and_transform():
    model = named()
    assert model.transform([FIRST, SECOND]).sum(axis=1) == pytest.approx(1.0)
    flat = pb.DocumentModel.dirichlet([ENGLISH, GERMAN], [1.0, 1.0])
    found = pb.compare({"model": model, "flat": flat}, [FIRST, SECOND], random_state=0)
    assert found.results["model"].total == pytest.approx(EXPECTED.sum())

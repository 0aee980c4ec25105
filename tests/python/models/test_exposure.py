"""Documents of known sizes: scores, training, files, the command line, and what is refused."""

import numpy as np
import pytest
import sklearn
from scipy import sparse, special
from sklearn.model_selection import cross_val_score

import polyabayes as pb
from helpers.small_models import known_lda, known_pfa
from polyabayes import _core
from polyabayes._support.posterior_draws import n_effective
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.models.fitted_topics import expected_tokens

TOPICS = np.array([[0.5, 0.3, 0.2, 0.1], [0.1, 0.2, 0.7, 0.4]])
COUNTS = np.array([[2, 0, 1, 3], [2, 0, 1, 3], [0, 4, 0, 0], [0, 0, 0, 0]])
EXPOSURE = [0.25, 3.0, 1.0, 40.0]


def model(probability=0.4, topic_word=TOPICS):
    return known_pfa([0.7, 1.3], probability, topic_word, random_state=0)


def planted(n_documents=300, seed=0):
    """Documents of very different sizes."""
    rng = np.random.default_rng(seed)
    exposure = np.exp(rng.normal(0, 1.5, n_documents))
    theta = rng.gamma(2.0, 5.0, (n_documents, 3)).repeat(10, axis=1)
    return pb.Corpus(rng.poisson(exposure[:, None] * theta / 10), exposure=exposure)


@pytest.mark.parametrize("event", ["sequence", "counts"])
@pytest.mark.parametrize("given_length", [False, True])
def test_an_exposure_multiplies_the_odds(event, given_length):
    asked = {"event": event, "given_length": given_length}
    found = pb.log_likelihood(model(), COUNTS, "exact", exposure=EXPOSURE, **asked).values
    for row, exposure in enumerate(EXPOSURE):
        p = exposure * 0.4 / (0.6 + exposure * 0.4)
        expected = pb.log_likelihood(model(p), COUNTS[row : row + 1], "exact", **asked).total
        assert found[row] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        # The same rates again, by topics of other sizes.
        scaled = pb.log_likelihood(model(0.4, exposure * TOPICS), COUNTS[[row]], "exact", **asked)
        assert found[row] == pytest.approx(scaled.total, rel=1e-12, abs=1e-12)


R, P = np.array([0.7, 1.3, 0.2]), np.array([0.6, 0.25, 0.9])
PHI = [[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.7, 0.4], [0.2, 1.1, 0.3, 0.1]]
ROWS = np.array([[5, 2, 4, 3], [5, 2, 4, 3], [1, 9, 0, 2]])


def scaled(exposure):
    """The model in which the exposure is part of the scale of the topic weights."""
    return known_pfa(R, exposure * P / (1 - P + exposure * P), PHI, random_state=0)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("recursive", {}),
        ("direct", {"n_samples": 20_000}),
        ("harmonic", {"n_samples": 2000}),
        ("mean-field", {"n_samples": 2000}),
        ("left-to-right", {"n_particles": 200}),
        ("left-to-right-particle", {"n_particles": 200}),
        ("left-to-right-sequential", {"n_particles": 500}),
        ("l2r", {"n_particles": 200}),
        ("l2r", {"n_particles": 200, "options": {"n_conditional_samples": 3}}),
        ("smc", {"n_particles": 500}),
        ("smc-lookahead", {"n_particles": 500}),
        ("annealed", {"n_samples": 500, "options": {"start": "prior"}}),
        ("annealed", {"n_samples": 500, "options": {"start": "mean-field"}}),
        ("chib", {"n_samples": 200}),
    ],
)
def test_every_estimator_has_the_value_of_the_scaled_model(method, options):
    sizes = [0.1, 7.0, 3.0]
    found = pb.log_likelihood(scaled(1.0), ROWS, method, exposure=sizes, random_state=3, **options)
    for row, exposure in enumerate(sizes):
        other = pb.log_likelihood(scaled(exposure), ROWS[[row]], method, random_state=3, **options)
        error = np.hypot(found.std_errors[row], other.std_errors[0])
        # The recursion claims no error, and has the same bits but for rounding.
        slack = 1e-12 if method == "recursive" else 4 * min(error, 0.4)
        assert abs(found.values[row] - other.total) < slack


@pytest.mark.parametrize("exposure", [0.05, 0.2, 30.0])
def test_completions_and_weights_are_those_of_the_scaled_model(exposure):
    observed, held_out = (pb.Corpus([x], exposure=exposure) for x in ([2, 0, 1, 3], [0, 1, 1, 0]))
    found = pb.log_completion(scaled(1.0), observed, held_out, "exact").total
    plain = observed.with_exposure(None), held_out.with_exposure(None)
    expected = pb.log_completion(scaled(exposure), *plain, "exact").total
    assert found == pytest.approx(expected, rel=1e-12)
    run = {"spread": False, "n_sweeps": 40_000, "seed": 0, "n_jobs": 1}
    weights, others = (
        _core.transform(known._core_model(), corpus._core_documents(), **run)
        for known, corpus in ((scaled(1.0), observed), (scaled(exposure), plain[0]))
    )
    np.testing.assert_allclose(exposure * weights, others, rtol=0.02)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", ["auto", "smc", "annealed", "l2r"])
def test_exposure_one_is_the_same_bits(method):
    documents = [[9, 4, 7, 3], [5, 0, 8, 3]]
    plain = pb.log_likelihood(model(), documents, method, random_state=1)
    ones = pb.log_likelihood(model(), documents, method, exposure=1, random_state=1)
    assert (ones.values == plain.values).all()
    assert (model().transform(documents, exposure=[1.0, 1]) == model().transform(documents)).all()
    fitted = [
        pb.PoissonFactorAnalysis(2, max_iter=10, random_state=0).fit(documents, exposure=exposure)
        for exposure in (None, 1.0)
    ]
    assert (fitted[0].components_ == fitted[1].components_).all()
    assert (fitted[0].probability_ == fitted[1].probability_).all()


def test_everything_that_scores_takes_exposures():
    fitted, corpus = model(), pb.Corpus(COUNTS, exposure=EXPOSURE)
    values = pb.log_likelihood(fitted, COUNTS, exposure=EXPOSURE).values
    assert (pb.log_likelihood(fitted, corpus).values == values).all()
    assert (fitted.score_samples(COUNTS, exposure=EXPOSURE) == values).all()
    assert fitted.score(corpus) == values.sum() / COUNTS.sum()
    words = {"event": "sequence", "given_length": True}
    expected = pb.log_likelihood(fitted, COUNTS, exposure=EXPOSURE, **words).perplexity
    assert fitted.perplexity(corpus) == expected
    weights = fitted.transform(COUNTS, exposure=EXPOSURE)
    assert (weights[0] > 2 * weights[1]).all()
    found = pb.compare({"one": fitted, "two": model(0.5)}, COUNTS, exposure=EXPOSURE)
    assert found.results["one"].values.sum() == pytest.approx(
        pb.log_likelihood(fitted, corpus, event="sequence", random_state=0).total
    )
    by_argument = pb.completion_perplexity(fitted, COUNTS, exposure=EXPOSURE, random_state=0)
    assert pb.completion_perplexity(fitted, corpus, random_state=0).value == by_argument.value
    options = {"n_documents": 5, "exposure": [0.1, 1, 2, 3, 9], "random_state": 0}
    bounds = pb.bidirectional_bounds(fitted, "annealed", **options)
    exact = pb.log_likelihood(fitted, bounds.data, "exact").values
    assert bounds.data.exposure.tolist() == [0.1, 1, 2, 3, 9]
    assert (np.abs(bounds.lower - exact) < 4 * bounds.lower_std_errors + 1e-9).all()
    assert (np.abs(bounds.upper - exact) < 4 * bounds.upper_std_errors + 1e-9).all()


def test_long_documents_train_as_others_do():
    corpus = planted()
    exposure = corpus.exposure.copy()
    # One document of more tokens than 16 bits count, and as many by topic as its exposure makes.
    counts = corpus.counts.toarray()
    longest = counts.sum(axis=1).argmax()
    factor = 70_000 // counts[longest].sum() + 1
    counts[longest] *= factor
    exposure[longest] *= factor
    assert counts[longest].sum() > 65_535
    settings = {"prior": "beta-gamma-gamma", "max_iter": 100, "random_state": 0}
    long = pb.PoissonFactorAnalysis(3, **settings).fit(pb.Corpus(counts, exposure=exposure))
    short = pb.PoissonFactorAnalysis(3, **settings).fit(corpus)
    odds = [model.probability_ / (1 - model.probability_) for model in (long, short)]
    means = [np.sort(model.shape_ * odd) for model, odd in zip((long, short), odds, strict=True)]
    # Each fit scatters by 4 %.
    assert means[0] == pytest.approx(means[1], rel=0.15)


@pytest.mark.parametrize("prior", ["gap", "gamma", "beta-gamma", "beta-gamma-gamma"])
def test_every_prior_learns_the_scale(prior):
    corpus = planted()
    fixed = {"shape": 2.0, "probability": 5 / 6} if prior in ("gap", "gamma") else {}
    fixed |= {"shape": 2.0} if prior == "beta-gamma" else {}
    model = pb.PoissonFactorAnalysis(3, prior=prior, max_iter=120, random_state=0, **fixed)
    found = model.fit(corpus)
    means = found.shape_ * found.probability_ / (1 - found.probability_)
    assert means == pytest.approx(np.full(3, 10.0), rel=0.15)


def test_coefficients_have_the_posterior_that_integration_gives():
    n, e = np.array([0, 2, 7, 1, 5, 30, 2, 4]), np.array([0.3, 1, 2, 0.5, 0.1, 4, 0.5, 0.2])
    corpus = pb.Corpus(n[:, None], exposure=e).with_metadata({"batch": np.arange(8) // 4})
    options = {"formula": "~ batch", "max_iter": 8000, "burn_in": 500, "thin": 1}
    found = pb.PoissonFactorAnalysis(1, random_state=0, **options).fit(corpus)
    # One topic: ln r is a line in the standardised batch, and ln x is ln (1 - p) / p.
    axes = np.linspace(-5, 3, 60), np.linspace(-3, 4, 61), np.linspace(-10, 5, 62)
    start, slope, ln_x = np.meshgrid(*axes, indexing="ij", sparse=True)
    ln_value = start - np.exp(start) - 1.5 * np.log(1 + slope**2)
    ln_value = ln_value - 0.5 * (np.logaddexp(0, ln_x) + np.logaddexp(0, -ln_x))
    for tokens, exposure, batch in zip(n, e, corpus.metadata["batch"], strict=True):
        r = np.exp(start + slope * (2 * batch - 1))
        ln_value = ln_value + special.gammaln(r + tokens) - special.gammaln(r) + r * ln_x
        ln_value = ln_value - (r + tokens) * np.logaddexp(ln_x, np.log(exposure))
    weights = np.exp(ln_value - ln_value.max())
    draws = found.coefficient_draws_[:, 0]
    errors = draws.std(axis=0) / np.sqrt(n_effective(draws[:, None])).ravel()
    for own, value, error in zip(draws.T, (start - slope, 2 * slope), errors, strict=True):
        mean = (weights * value).sum() / weights.sum()
        spread = np.sqrt((weights * value**2).sum() / weights.sum() - mean**2)
        assert abs(own.mean() - mean) < 4 * error < 0.3 * spread
        assert own.std() == pytest.approx(spread, rel=0.1)


def batches():
    """Two batches: the second is deeper, and has more of each topic but the first."""
    rng = np.random.default_rng(0)
    batch = np.arange(80) % 2
    exposure = np.exp(rng.normal(0, 0.7, 80)) * (1 + 2 * batch)
    theta = 3 * rng.gamma(np.exp(batch[:, None] * [0.0, 0.7, 1.0]))
    counts = rng.poisson(exposure[:, None] * np.repeat(theta / 10, 10, axis=1))
    names = {"batch": np.array(["a", "b"])[batch]}
    return pb.Corpus(counts, exposure=exposure).with_metadata(names)


def by_batch(max_iter=200, **options):
    options = {"formula": "~ batch", "max_iter": max_iter, "random_state": 0, **options}
    return pb.PoissonFactorAnalysis(3, **options)


@pytest.mark.filterwarnings("ignore:the .* draws of coefficients")
def test_covariates_and_exposures_scale_as_they_should():
    corpus = batches()
    doubled = corpus.with_exposure(2 * corpus.exposure)
    fixed = [by_batch(20, prior="gamma", probability=p) for p in (0.5, 1 / 3)]
    one, half = (model.fit(x) for model, x in zip(fixed, (corpus, doubled), strict=True))
    np.testing.assert_allclose(half.coefficient_draws_, one.coefficient_draws_, rtol=1e-9)
    learned = [by_batch().fit(x).transform(x).mean() for x in (corpus, doubled)]
    assert learned[1] == pytest.approx(learned[0] / 2, rel=0.02)
    plain, ones = (by_batch(10).fit(corpus.with_exposure(x)) for x in (None, 1.0))
    assert (plain.coefficient_draws_ == ones.coefficient_draws_).all()


@pytest.mark.filterwarnings("ignore:the .* draws of coefficients")
def test_everything_knows_covariates_and_exposures_together(tmp_path):
    corpus = batches()
    fitted = by_batch(checkpoint=tmp_path).fit(corpus)
    assert (by_batch(checkpoint=tmp_path).fit(corpus).components_ == fitted.components_).all()
    fitted.save(tmp_path / "model.safetensors")
    loaded = pb.load(tmp_path / "model.safetensors")
    weights = loaded.transform(corpus)
    assert (weights == fitted.transform(corpus)).all()
    priors = np.exp(np.array([[1, 0], [1, 1]] * 40) @ fitted.coefficients_.T)
    known = known_pfa(fitted.shape_, fitted.probability_, fitted.components_, random_state=0)
    effort = {"n_samples": 5, "random_state": 0}
    found = pb.log_likelihood(loaded, corpus, "annealed", **effort)
    effort |= {"shape": priors, "exposure": corpus.exposure}
    given = pb.log_likelihood(known, corpus.counts, "annealed", **effort)
    np.testing.assert_allclose(found.values, given.values, rtol=1e-9)
    odds = (1 - fitted.probability_) / fitted.probability_
    rates = (priors + expected_tokens(loaded, corpus)) / (odds + corpus.exposure[:, None])
    np.testing.assert_allclose(rates, weights, rtol=1e-9)
    assert pb.drift(loaded, corpus[:40], corpus[40:], n_simulated=60, random_state=0).p_value > 0.01
    effect = pb.topics.contrast(loaded, {"batch": "b"}, {"batch": "a"})
    assert effect.mean[0, fitted.components_[:, 0].argmax()] < -0.05
    means = pb.topics.by_group(loaded, corpus, "batch").means
    shares = means / means.sum(axis=1, keepdims=True)
    expected = pb.topics.prevalence(loaded, {"batch": ["a", "b"]}).mean
    np.testing.assert_allclose(shares, expected, atol=0.1)
    with pytest.raises(InvalidArgumentError, match="in memory"):
        by_batch().fit(pb.write_shards(corpus, tmp_path / "shards"))


def test_nmf_gives_weights_by_unit_of_exposure():
    corpus = planted(60)
    nmf = pb.PoissonFactorAnalysis(3, prior="nmf", max_iter=30, random_state=0)
    plain = nmf.fit(corpus.counts).transform(corpus.counts)
    topics = nmf.components_
    exposed = nmf.fit(corpus).transform(corpus)
    assert (nmf.components_ == topics).all()
    assert exposed == pytest.approx(plain / corpus.exposure[:, None], rel=1e-12)


@pytest.mark.parametrize(
    ("cls", "name"),
    [(pb.PoissonFactorAnalysis, "exposure"), (pb.LatentDirichletAllocation, "covariates")],
)
def test_scikit_learn_passes_on_what_documents_have_beside_words(cls, name):
    corpus = planted(40)
    rows = corpus.exposure if name == "exposure" else corpus.exposure[:, np.newaxis]
    with sklearn.config_context(enable_metadata_routing=True):
        model = cls(2, max_iter=10, random_state=0)
        model.set_fit_request(**{name: True}).set_score_request(**{name: True})
        options = {"params": {name: rows}, "error_score": "raise"}
        routed = cross_val_score(model, corpus.counts, cv=2, **options)
    for score, held_out in zip(routed, (slice(20), slice(20, 40)), strict=True):
        kept = slice(20, 40) if held_out == slice(20) else slice(20)
        model.fit(corpus.counts[kept], **{name: rows[kept]})
        assert score == model.score(corpus.counts[held_out], **{name: rows[held_out]})
    weights = model.fit_transform(corpus.counts, **{name: rows})
    assert (weights == model.transform(corpus.counts, **{name: rows})).all()


def test_parts_of_a_corpus_keep_their_exposures():
    corpus = pb.Corpus(COUNTS, vocabulary=list("abcd"), exposure=EXPOSURE)
    assert corpus[[2, 0]].exposure.tolist() == [1.0, 0.25]
    train, test = corpus.split(0.5, random_state=0)
    assert sorted([*train.exposure, *test.exposure]) == sorted(EXPOSURE)
    assert corpus.aligned_to(list("dcba"))[0].exposure.tolist() == EXPOSURE
    observed, held_out = pb.split_tokens(corpus, random_state=0)
    assert observed.exposure.tolist() == held_out.exposure.tolist() == EXPOSURE
    assert corpus.with_exposure(None).exposure is None


def test_files_hold_exposures_or_refuse_them(tmp_path):
    pandas = pytest.importorskip("pandas")
    corpus = pb.Corpus(COUNTS, vocabulary=list("abcd"), exposure=EXPOSURE)
    pb.write_corpus(corpus, tmp_path / "sizes.npz")
    assert pb.read_corpus(tmp_path / "sizes.npz").exposure.tolist() == EXPOSURE
    with pytest.raises(InvalidArgumentError, match="exposure"):
        pb.write_corpus(corpus, tmp_path / "sizes.ldac")
    wide = pandas.DataFrame(COUNTS, columns=list("abcd")).assign(depth=EXPOSURE)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    read = pb.read_corpus(tmp_path / "wide.csv", exposure="depth")
    assert read.exposure.tolist() == EXPOSURE
    assert (read.counts.toarray() == COUNTS).all()
    cells = sparse.coo_matrix(COUNTS[:3])
    long = pandas.DataFrame({"document": cells.row, "word": cells.col, "count": cells.data})
    long = long.assign(depth=np.array(EXPOSURE)[cells.row])
    long.to_csv(tmp_path / "long.csv", index=False)
    read = pb.read_corpus(tmp_path / "long.csv", exposure="depth")
    assert read.exposure.tolist() == EXPOSURE[:3]
    long.loc[0, "depth"] = 7.0
    long.to_csv(tmp_path / "long.csv", index=False)
    with pytest.raises(FileFormatError, match="different exposures"):
        pb.read_corpus(tmp_path / "long.csv", exposure="depth")
    (tmp_path / "sizes.txt").write_text("\n".join(map(str, EXPOSURE)))
    read = pb.read_corpus(tmp_path / "sizes.npz", exposure=tmp_path / "sizes.txt")
    assert read.exposure.tolist() == EXPOSURE
    (tmp_path / "sizes.txt").write_text("1\n2\nthree\n4")
    with pytest.raises(FileFormatError, match="number 3"):
        pb.read_corpus(tmp_path / "sizes.npz", exposure=tmp_path / "sizes.txt")


def lda():
    return known_lda(0.5, TOPICS / TOPICS.sum(axis=1, keepdims=True), random_state=0)


UNTRAINED = pb.LatentDirichletAllocation(2, max_iter=5, random_state=0)


def test_lda_leaves_exposures_of_a_corpus_alone():
    corpus = pb.Corpus(COUNTS, exposure=EXPOSURE)
    scores = [pb.log_likelihood(lda(), x).values for x in (corpus, COUNTS)]
    assert (scores[0] == scores[1]).all()
    fits = [UNTRAINED.fit(documents).components_ for documents in (corpus, COUNTS)]
    assert (fits[0] == fits[1]).all()
    assert pb.compare({"lda": lda(), "pfa": model()}, COUNTS, exposure=EXPOSURE).given_length


ASKS = {
    "transform": lambda fitted, x: fitted.transform(x),
    "topic_weights": lambda fitted, x: fitted.topic_weights(x),
    "score": lambda fitted, x: fitted.score(x),
    "score_samples": lambda fitted, x: fitted.score_samples(x),
    "perplexity": lambda fitted, x: fitted.perplexity(x),
    "log_likelihood": pb.log_likelihood,
    "blocks": lambda fitted, x: pb.log_likelihood(fitted, iter([x])),
    "compare": lambda fitted, x: pb.compare({"one": fitted, "two": model()}, x),
    "completion": pb.completion_perplexity,
    "by_group": lambda fitted, x: pb.topics.by_group(fitted, x, [0, 0, 1, 1]),
    "top_documents": lambda fitted, x: pb.topics.top_documents(fitted, x),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_a_model_of_exposures_refuses_documents_without(ask, tmp_path):
    fitted = pb.PoissonFactorAnalysis(2, max_iter=5, random_state=0).fit(COUNTS, exposure=EXPOSURE)
    fitted.save(tmp_path / "model.safetensors")
    for one in (fitted, pb.load(tmp_path / "model.safetensors")):
        with pytest.raises(InvalidArgumentError, match="these have none: give exposure"):
            ask(one, COUNTS)
        ask(one, pb.Corpus(COUNTS, exposure=1.0))

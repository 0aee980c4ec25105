"""What people look at: coherence against gensim, matches, figures, the report in a browser."""

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import polyabayes as pb
import polyabayes.exceptions as errors
from helpers.processes import in_browser
from helpers.small_models import known_lda, known_pfa
from polyabayes import _core
from polyabayes._support.output.tables import measured

ROOT = Path(__file__).parents[3]
WORDS = ["urn", "ball", "draw", "gene", "cell", "rate", "law", "sum"]
PHI = np.array(
    [[8, 6, 4, 1, 1, 1, 2, 1], [1, 1, 2, 9, 7, 5, 1, 1], [1, 3, 1, 1, 1, 2, 9, 8]], dtype=np.float64
)


LDA = known_lda(0.3, PHI / PHI.sum(axis=1, keepdims=True), vocabulary=WORDS, random_state=0)
# The four words of the largest weights of each topic.
TOP = [[WORDS[w] for w in row[:4]] for row in np.argsort(-PHI, axis=1, kind="stable")]


@pytest.fixture(scope="module")
def texts():
    """Documents shorter than a window of gensim."""
    rng = np.random.default_rng(1)
    return [
        [WORDS[w] for w in rng.permutation(8)[: rng.integers(2, 8)]]
        + [f"other{i}" for i in range(9)]
        for _ in range(80)
    ]


@pytest.mark.parametrize(
    ("measure", "theirs"),
    [("npmi", "c_npmi"), ("uci", "c_uci"), ("umass", "u_mass"), ("c_v", "c_v")],
)
def test_coherence_is_that_of_gensim(texts, measure, theirs):
    corpora, models = pytest.importorskip("gensim.corpora"), pytest.importorskip("gensim.models")
    dictionary = corpora.Dictionary([*texts, WORDS])
    reference = {"texts": texts, "processes": 1, "window_size": 100}
    if measure == "umass":
        reference = {"corpus": [dictionary.doc2bow(text) for text in texts]}
    ours = pb.topics.coherence(LDA, pb.Corpus.from_documents(texts), measure, n_words=4)
    options = {"topics": TOP, "dictionary": dictionary, "topn": 4, **reference}
    model = models.CoherenceModel(coherence=theirs, **options)
    np.testing.assert_allclose(ours, model.get_coherence_per_topic(), rtol=1e-9)


def test_words_that_are_given_have_the_coherence_of_the_model_whose_they_are(texts):
    corpus = pb.Corpus.from_documents(texts)
    wanted = pb.topics.coherence(LDA, corpus, n_words=4)
    np.testing.assert_array_equal(pb.topics.coherence(TOP, corpus), wanted)
    # A word that the reference does not know occurs nowhere.
    found = pb.topics.coherence([["urn", "ball"], ["urn", "nowhere"]], corpus)
    assert np.isfinite(found).tolist() == [True, False]


def test_small_vocabularies_and_corpora_have_all_there_is():
    model = known_lda(0.5, [[0.5, 0.5, 0], [0, 0.5, 0.5]], random_state=0)
    documents = [[3, 1, 0], [0, 1, 2]]
    assert pb.topics.diagnostics(model, documents).words.shape == (2, 3)
    assert np.isfinite(pb.topics.coherence(model, documents)).all()
    assert pb.topics.top_documents(model, documents).rows.shape == (2, 2)
    alone = known_lda(0.5, [[1.0]])
    assert np.isnan(pb.topics.coherence(alone, [[3]])).all()


@pytest.mark.parametrize("metric", ["cosine", "hellinger"])
def test_a_permuted_model_is_matched_to_itself(metric):
    order = [2, 0, 1]
    columns = np.random.default_rng(0).permutation(8)
    words = np.array(WORDS)[columns].tolist()
    other = known_lda(0.3, LDA.components_[order][:, columns], vocabulary=words)
    match = pb.topics.match_topics(LDA, other, metric)
    pairs = zip(match.first, match.second, strict=True)
    assert set(pairs) == {(2, 0), (0, 1), (1, 2)}
    np.testing.assert_allclose(match.similarities, 1, atol=1e-7)
    np.testing.assert_allclose(pb.topics.stability([LDA, other, LDA], metric), 1, atol=1e-7)


def test_plain_arrays_of_topics_are_matched_by_cosine():
    pandas = pytest.importorskip("pandas")
    signatures = 7 * LDA.components_[[2, 0, 1]]
    named = pandas.DataFrame(signatures, columns=WORDS)[WORDS[::-1]]
    for other in (signatures, signatures.tolist(), named):
        match = pb.topics.match_topics(LDA, other)
        assert set(zip(match.first, match.second, strict=True)) == {(2, 0), (0, 1), (1, 2)}
        np.testing.assert_allclose(match.similarities, 1)
    one, other = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
    cosine = 5 / np.sqrt(10 * 5)
    np.testing.assert_allclose(pb.topics.match_topics(one, other).similarities, cosine)
    np.testing.assert_allclose(pb.topics.stability([one, other, one]), (1 + cosine) / 2)


def test_means_of_groups_have_the_errors_of_the_method_of_composition():
    """Regressions on the groups for draws of all weights, and a draw of each one's coefficients."""
    rng = np.random.default_rng(5)
    counts = np.vstack([rng.multinomial(6, LDA.components_[d % 3]) for d in range(24)])
    corpus = pb.Corpus(counts, WORDS).with_metadata({"blog": ["a", "b"] * 12, "year": range(24)})
    found = pb.topics.by_group(LDA, corpus, "blog")
    weights, rows = LDA.topic_weights(corpus), np.arange(24) % 2
    assert (found.groups.tolist(), found.n_documents.tolist()) == (["a", "b"], [12, 12])
    np.testing.assert_allclose(found.means, [weights.mean[rows == g].mean(axis=0) for g in (0, 1)])
    n_draws = 20_000
    draws = rng.normal(weights.mean, weights.std, (n_draws, 24, 3))
    for group in (0, 1):
        own = draws[:, rows == group]
        coefficients = rng.normal(own.mean(axis=1), own.std(axis=1, ddof=1) / np.sqrt(12))
        # A standard deviation of that many draws has an error of half a percent.
        np.testing.assert_allclose(found.std_errors[group], coefficients.std(axis=0), rtol=0.025)
    low, high = found.interval(0.5)
    np.testing.assert_allclose((high - low) / 2, 0.6974 * found.std_errors, rtol=1e-3)
    alone = pb.topics.by_group(LDA, corpus, corpus.metadata["year"])
    assert np.isnan(alone.std_errors).all()
    assert alone.to_frame().shape == (72, 7)
    years = pb.topics.by_group(LDA, corpus, [0] * 12 + [1] * 11 + [2])
    # A document alone is taken to vary as the others do.
    own = weights.mean[:12], weights.mean[12:23]
    within = sum(((x - x.mean(axis=0)) ** 2).sum(axis=0) for x in own) / 21
    expected = np.sqrt(within + 2 * weights.std[23] ** 2)
    np.testing.assert_allclose(years.std_errors[2], expected, rtol=1e-12)
    assert years.n_freedom.tolist() == [11, 10, 21]
    low, high = years.interval(0.999)
    assert low.min() == 0
    assert high.max() == 1
    assert (low <= years.means).all()
    np.testing.assert_array_equal(found.to_frame()["lower"], found.interval()[0].ravel())
    np.testing.assert_array_equal(found.to_frame()["upper"], found.interval()[1].ravel())


def test_the_citation_names_this_model_and_this_result():
    counts = np.random.default_rng(2).poisson(2, (30, 8))
    model = pb.LatentDirichletAllocation(2, max_iter=12, random_state=3).fit(counts)
    result = pb.log_likelihood(model, counts, "annealed", n_samples=20, random_state=0)
    found = pb.cite(model, result)
    text = " ".join(found.methods.split())
    told = f"2 topics over 8 words, trained by Gibbs sampling (12 sweeps, seed {model.seed_})"
    assert told in text
    assert f"{measured(result.nats_per_token, result.nats_per_token_std_error)} nats" in text
    assert pb.__version__ in found.bibtex
    assert "taken from elsewhere" in " ".join(pb.cite(LDA).methods.split())
    decoder = pb.DocumentModel.logistic_normal(np.eye(3), np.zeros(3), np.eye(3), decoder="softmax")
    text = " ".join(pb.cite(decoder).methods.split())
    assert "a logistic-normal model that decodes weights by a softmax with 3 topics" in text
    by_day = clone(model).fit(counts, covariates={"day": np.arange(30.0)})
    assert "a regression on covariates (day), trained" in " ".join(pb.cite(by_day).methods.split())
    title = re.search(r'^title: "(.*)"', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert f"title = {{{title}}}" in found.bibtex


def test_words_that_documents_lack_leave_the_distance_from_them_finite():
    counts = np.random.default_rng(2).poisson(2, (30, 8))
    counts[:, 0] = 0
    found = pb.topics.diagnostics(LDA, counts, n_words=3)
    frequency = counts.sum(axis=0)[1:] / counts.sum()
    phi = LDA.components_[:, 1:] / LDA.components_[:, 1:].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.corpus_dist, (phi * np.log(phi / frequency)).sum(axis=1))


def test_figures_are_those_of_their_definitions():
    counts = np.random.default_rng(2).poisson(2, (30, 8))
    found = pb.topics.diagnostics(LDA, counts, n_words=3)
    phi = LDA.components_
    top = np.argsort(-phi, axis=1, kind="stable")[:, :3]
    # E[theta] = (alpha + E[n]) / (alpha_+ + N).
    tokens = LDA.transform(counts) * (0.9 + counts.sum(axis=1, keepdims=True)) - 0.3
    np.testing.assert_allclose(found.tokens, tokens.sum(axis=0))
    of_documents = tokens / tokens.sum(axis=0)
    entropy = -(of_documents * np.log(of_documents)).sum(axis=0)
    np.testing.assert_allclose(found.document_entropy, entropy)
    frequency = counts.sum(axis=0) / counts.sum()
    np.testing.assert_allclose(found.corpus_dist, (phi * np.log(phi / frequency)).sum(axis=1))
    np.testing.assert_allclose(found.uniform_dist, (phi * np.log(phi * 8)).sum(axis=1))
    np.testing.assert_allclose(found.eff_num_words, 1 / (phi**2).sum(axis=1))
    share = phi / phi.sum(axis=0)
    wanted = [share[k, row].mean() for k, row in enumerate(top)]
    np.testing.assert_allclose(found.exclusivity, wanted)
    lengths = [np.mean([len(WORDS[w]) for w in row]) for row in top]
    np.testing.assert_allclose(found.word_length, lengths)
    frame = found.to_frame()
    assert frame["words"][0].split() == ["urn", "ball", "draw"]
    assert len(frame) == 3


TOPICS = np.array([[0.5, 0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.2, 0.3, 0.5]])


@pytest.mark.parametrize("exposure", [None, [1.0, 5.0, 0.1]])
@pytest.mark.parametrize("kind", ["lda", "pfa"])
def test_tokens_are_counted_where_their_topics_are_known(kind, exposure):
    """As MALLET counts its state: priors, however large, add no tokens."""
    if kind == "lda":
        model = known_lda([4.0, 9.0], TOPICS, random_state=0)
    else:
        model = known_pfa([4.0, 2.0], [0.9, 0.2], TOPICS * [[1.0], [3.0]], random_state=0)
    corpus = pb.Corpus([[3, 2, 1, 0, 1], [0, 0, 4, 0, 0], [0, 0, 0, 0, 0]], exposure=exposure)
    wanted = np.array([[5.0, 2.0], [0.0, 4.0], [0.0, 0.0]])
    found = pb.topics.diagnostics(model, corpus, n_words=2)
    np.testing.assert_allclose(found.tokens, wanted.sum(axis=0), rtol=1e-12)
    entropies = [0.0, np.log(6) - (2 * np.log(2) + 4 * np.log(4)) / 6]
    np.testing.assert_allclose(found.document_entropy, entropies, atol=1e-12)
    top = pb.topics.top_documents(model, corpus, 2)
    np.testing.assert_allclose(top.shares, [[5 / 7, 0.0], [1.0, 2 / 7]], atol=1e-12)
    shown = pb.interop.pyldavis_arguments(model, corpus)
    shares = [[5 / 7, 2 / 7], [0, 1], [5 / 11, 6 / 11]]
    np.testing.assert_allclose(shown["doc_topic_dists"], shares, atol=1e-12)
    assert shown["vocab"] == ["0", "1", "2", "4"]
    ax = pb.plotting.plot_topic_weights(model, corpus)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([6 / 11, 5 / 11])


def test_top_documents_hold_the_largest_shares():
    corpus = pb.Corpus([[9, 6, 4, 0, 0, 0, 0, 0], [0, 0, 0, 9, 9, 9, 0, 0]], WORDS, ["x", "y"])
    top = pb.topics.top_documents(LDA, corpus, n_documents=2)
    assert top.ids[0].tolist() == ["x", "y"]
    assert top.ids[1].tolist() == ["y", "x"]
    assert (np.diff(top.shares, axis=1) <= 0).all()


def page_of(folder, **options):
    rng = np.random.default_rng(3)
    counts = np.vstack([rng.multinomial(40, LDA.components_[d % 3]) for d in range(60)])
    words = ["</script><b>urn</b>", *WORDS[1:]]
    model = known_lda(0.3, LDA.components_, vocabulary=words, random_state=0)
    corpus = pb.Corpus(counts, words)
    path = pb.topics.report(model, corpus, folder / "report.html", title="A <title>", **options)
    return path, pb.log_likelihood(model, corpus, random_state=0)


def test_the_report_holds_the_scores_and_nothing_from_elsewhere(tmp_path):
    path, scores = page_of(tmp_path)
    text = path.read_text()
    assert "A &lt;title&gt;" in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    found = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert found["score"]["total"] == scores.total
    assert found["score"]["total_std_error"] == scores.total_std_error
    assert sum(found["score"]["counts"]) == 60
    assert sum(topic["share"] for topic in found["topics"]) == pytest.approx(1)
    assert {word[0] for topic in found["topics"] for word in topic["words"]} >= {"ball", "gene"}


def test_the_report_has_labels_excerpts_and_says_which_documents_they_are(tmp_path):
    texts = [f"document {number} </script> " + "word " * 200 for number in range(60)]
    options = {"labels": ["urns", "genes", "laws"], "texts": texts, "part": "held out"}
    path, _ = page_of(tmp_path, **options)
    found = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])
    assert found["part"] == "held out"
    for topic in found["topics"]:
        assert topic["label"] == options["labels"][topic["topic"]]
        for document in topic["documents"]:
            assert document["excerpt"].startswith(f"document {document['row']} </script> word")
            assert len(document["excerpt"]) <= 280


def test_the_report_opens_in_a_browser(tmp_path):
    path, scores = page_of(tmp_path)
    shown = in_browser(path)
    assert f"{scores.nats_per_token:.4f}" in shown
    assert shown.count("<article") == 3
    assert shown.count("<circle") == 3
    assert shown.count("<rect") == 30
    assert "<b>urn</b>" not in shown


def reported(documents, path):
    """A bad report leaves no file."""
    try:
        pb.topics.report(LDA, documents, path)
    finally:
        assert list(Path().iterdir()) == []


def test_doubts_of_a_report_name_the_function_that_takes_more_samples(tmp_path, monkeypatch):
    module = importlib.import_module("polyabayes.topics.report")
    scores = pb.log_likelihood(LDA, [[1] * 8], "annealed", n_samples=20, random_state=0)
    shaky = replace(scores, n_replicates=10**6)
    monkeypatch.setattr(module, "log_likelihood", lambda *_, **__: shaky)
    with pytest.warns(errors.UnreliableErrorWarning) as caught:
        pb.topics.report(LDA, [[1] * 8], tmp_path / "report.html")
    assert "polyabayes.log_likelihood(model, documents, n_samples=" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("metric", ["cosine", "hellinger"])
def test_topics_that_are_the_same_split_merged_gone_and_new(metric):
    rng = np.random.default_rng(0)
    base = rng.dirichlet(np.full(60, 0.1), 6)

    def drawn(topics):
        return np.array([rng.dirichlet(2000 * row + 1e-3) for row in topics])

    refits = [drawn(base)[rng.permutation(6)] for _ in range(3)]
    half = np.where(np.arange(60) < 30, base[2], 0)
    rest = base[2] - half
    parts = [half / half.sum(), rest / rest.sum()]
    fresh = rng.dirichlet(np.full(60, 0.1))
    second = drawn([base[0], base[1], *parts, (base[3] + base[4]) / 2, fresh])
    first = drawn(base)
    found = pb.topics.match_topics(first, second, metric, refits=refits)
    rows = [found.changes.row(ix) for ix in range(found.changes.n_rows)]
    told = {(row["change"], row["first"], row["second"]) for row in rows}
    assert told == {
        ("same", (0,), (0,)),
        ("same", (1,), (1,)),
        ("split", (2,), (2, 3)),
        ("merged", (3, 4), (4,)),
        ("gone", (5,), ()),
        ("new", (), (5,)),
    }
    assert all(row["similarity"] >= found.band for row in rows if row["first"] and row["second"])
    plain = pb.topics.match_topics(first, second, metric)
    assert (plain.changes.n_rows, np.isnan(plain.band)) == (0, True)


def test_words_by_four_orders_are_those_of_their_definitions():
    topics = np.array([[0.5, 0.3, 0.15, 0.05, 0.0], [0.5, 0.05, 0.05, 0.1, 0.3]])
    words = ["the", "war", "army", "tax", "jobs"]
    model = known_lda(0.5, topics, vocabulary=words)
    found = pb.topics.topic_words(model, n_words=5)
    assert found.probability[0].tolist() == ["the", "war", "army", "tax", "jobs"]
    lift = topics / topics.mean(axis=0)
    assert found.lift[0].tolist() == [words[w] for w in np.argsort(-lift[0], kind="stable")]
    ln = np.log(np.maximum(topics, 1e-100))
    score = topics * (ln - ln.mean(axis=0))
    assert found.score[1].tolist() == [words[w] for w in np.argsort(-score[1], kind="stable")]
    ranks = [stats.rankdata(x, axis=1) / 5 for x in (topics, topics / topics.sum(axis=0))]
    frex = 2 / (1 / ranks[0] + 1 / ranks[1])
    assert found.frex[0].tolist() == [words[w] for w in np.argsort(-frex[0], kind="stable")]
    # The word of both topics is the most probable, and tells neither.
    assert (found.probability[:, 0] == "the").all()
    assert found.frex[:, 0].tolist() == ["war", "jobs"]
    assert found.to_frame()["topic"].tolist() == ["topic 0", "topic 1"]


def test_passages_carry_their_topic():
    topics = [[0.45, 0.45, 0.05, 0.05], [0.05, 0.05, 0.45, 0.45]]
    words = ["war", "army", "tax", "jobs"]
    model = known_lda(0.5, topics, vocabulary=words, random_state=0)
    texts = [
        "We speak of jobs and tax. The army is at war, and war it is! Good night.",
        "Taxes, that is: tax and jobs.\nAn army.",
    ]
    corpus = pb.Corpus([[2, 1, 1, 1], [0, 1, 1, 1]]).with_metadata({"text": texts})
    found = pb.topics.top_documents(model, corpus, 2, texts="text")
    assert found.rows.tolist() == [[0, 1], [1, 0]]
    assert found.passages[0].tolist() == ["The army is at war, and war it is!", "An army."]
    told = ["Taxes, that is: tax and jobs.", "We speak of jobs and tax."]
    assert found.passages[1].tolist() == told
    assert found.to_frame()["passage"].tolist() == found.passages.ravel().tolist()


def test_names_of_topics_are_kept_and_shown(tmp_path):
    lda = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit([[9, 0], [0, 9]] * 3)
    assert lda.name_topics({1: "war"}).get_feature_names_out().tolist() == ["topic 0", "war"]
    lda.name_topics(["peace", "war"]).save(tmp_path / "lda.safetensors")
    loaded = pb.load(tmp_path / "lda.safetensors")
    assert loaded.topic_names_ == ["peace", "war"]
    ax = pb.plotting.plot_topic_similarity(loaded)
    assert {label.get_text() for label in ax.get_yticklabels()} == {"peace", "war"}
    shown = " ".join(text.get_text() for text in pb.plotting.plot_topics(loaded).texts)
    assert "peace" in shown
    counts = [[9, 0], [0, 9]]
    groups = pb.topics.by_group(loaded, counts, ["a", "b"])
    assert groups.labels == ["peace", "war"]
    for table in (
        groups,
        loaded.topic_weights(counts),
        loaded.topic_table(),
        pb.topics.topic_words(loaded),
        pb.topics.diagnostics(loaded, counts),
        pb.topics.top_documents(loaded, counts),
    ):
        assert set(table.to_frame()["topic"]) == {"peace", "war"}
    first = loaded.topic_table().to_frame().iloc[0]
    assert first["n_tokens"] == loaded.topic_counts_[["peace", "war"].index(first["topic"])]
    words = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0)
    words.fit(pb.Corpus([[9, 0], [0, 9]] * 3, ["urn", "ball"])).name_topics({1: "war"})
    top = ["urn", "ball"][words.components_[0].argmax()]
    assert pb.topics.by_group(words, counts, ["a", "b"]).labels[0].startswith(f"topic 0: {top}")
    page = pb.topics.report(loaded, counts, tmp_path / "page.html").read_text()
    assert '"label": "peace"' in page
    assert not hasattr(loaded.fit(counts), "topic_names_")


def test_weights_of_the_same_documents_are_computed_once(monkeypatch):
    calls, compute = [], _core.transform
    monkeypatch.setattr(_core, "transform", lambda *x, **y: calls.append(1) or compute(*x, **y))
    lda = known_lda([0.5, 0.2], [[0.8, 0.2], [0.1, 0.9]], random_state=0)
    counts = np.array([[9, 0], [8, 1], [0, 9], [1, 7]])
    first = lda.transform(counts)
    expected = first.copy()
    first[:] = 0
    pb.topics.by_group(lda, counts, [0, 0, 1, 1])
    pb.topics.diagnostics(lda, counts, 2)
    np.testing.assert_array_equal(lda.topic_weights(counts).mean, expected)
    assert len(calls) == 1
    np.testing.assert_array_equal(lda.transform(counts[:2]), expected[:2])
    lda.doc_topic_prior_ = np.array([5.0, 0.2])
    assert not np.isclose(lda.transform(counts[:2]), expected[:2]).any()
    assert len(calls) == 3


def test_groups_know_sampling_weights():
    rng = np.random.default_rng(3)
    lda = known_lda([0.5, 0.2], [[0.8, 0.2], [0.1, 0.9]], random_state=0)
    frame = {"year": [0] * 15 + [1] * 15, "wt": rng.uniform(0.5, 2.0, 30)}
    corpus = pb.Corpus(rng.integers(1, 9, (30, 2))).with_metadata(frame)
    found = pb.topics.by_group(lda, corpus, "year", weights="wt")
    weights = lda.topic_weights(corpus)
    for group in (0, 1):
        rows, w = slice(15 * group, 15 * group + 15), frame["wt"][15 * group : 15 * group + 15]
        mean = w @ weights.mean[rows] / w.sum()
        np.testing.assert_allclose(found.means[group], mean)
        # Residuals of the weighted mean, and both parts of the method of composition.
        between = 15 / 14 * w**2 @ (weights.mean[rows] - mean) ** 2
        variance = (between + 2 * w**2 @ weights.std[rows] ** 2) / w.sum() ** 2
        np.testing.assert_allclose(found.std_errors[group], np.sqrt(variance))
    same = pb.topics.by_group(lda, corpus, "year", weights=np.full(30, 7.0))
    without = pb.topics.by_group(lda, corpus, "year")
    np.testing.assert_allclose(same.std_errors, without.std_errors, rtol=1e-12)

"""Displays in notebooks: every name is escaped, in a real browser, too."""

import pytest
import sklearn

import polyabayes as pb
from helpers.processes import in_browser
from helpers.small_models import known_lda
from polyabayes.exceptions import RefusedModelWarning

EVIL = "<script>document.title='owned'</script>"
BROKEN = "<img src=x onerror=\"document.title='owned'\">&amp;"


def displays():
    """Name of a class and its display, for corpora, models and results with bad names."""
    corpus = pb.Corpus([[3, 1, 0, 0], [0, 2, 2, 5]], [EVIL, BROKEN, "urn", "cell"], [EVIL, "y"])
    options = {"max_iter": 20, "random_state": 0}
    lda = pb.LatentDirichletAllocation(2, **options).fit(corpus)
    pfa = pb.PoissonFactorAnalysis(2, **options).fit(corpus)
    models = {EVIL: lda, BROKEN: pb.LatentDirichletAllocation(), "pfa": pfa}
    with pytest.warns(RefusedModelWarning):
        comparison = pb.compare(models, corpus)
    nmf = pb.AllocationModel.nmf(2)
    labels = [[EVIL, "q"], ["r", BROKEN]]
    tensor = pb.CountTensor.from_dense([[1, 2], [3, 4]], ["doc", "word"], labels)
    shown = [corpus, corpus.summary(), pb.log_likelihood(lda, corpus), comparison]
    shown += [lda, pfa, pb.LatentDirichletAllocation(), nmf, nmf.log_evidence(tensor), tensor]
    shown += [pb.topics.diagnostics(lda, corpus, 2), pb.topics.top_documents(lda, corpus, 2)]
    shown += [pb.topics.match_topics(lda, pfa), lda.topic_table(3)]
    shown += [pb.sample_chains(lda.set_params(thin=1), corpus, 2, random_state=0)]
    shown += [pb.posterior_over_models({EVIL: nmf, "one": pb.AllocationModel.nmf(1)}, tensor)]
    return [(type(one).__name__, one._repr_html_()) for one in shown]


def test_names_are_escaped_in_every_display():
    found = displays()
    for name, html in found:
        assert "<table" in html or "sk-container" in html, name
        assert EVIL not in html, name
        assert "<img" not in html, name
    named = [name for name, html in found if "&lt;script&gt;document" in html]
    assert {"Corpus", "LatentDirichletAllocation", "LogLikelihood", "Comparison"} <= set(named)
    assert {"TopicTable", "TopicDiagnostics", "TopDocuments", "CountTensor"} <= set(named)


def test_fitted_models_show_their_topics_beside_their_diagram():
    lda = known_lda(0.5, [[0.75, 0.25], [0.0, 1.0]], vocabulary=["urn", "ball"])
    bundle = lda._repr_mimebundle_()
    assert "2 topics of 2 words" in bundle["text/html"]
    assert "urn ball" in bundle["text/html"]
    assert "urn ball" in lda._repr_html_()
    with sklearn.config_context(display="text"):
        assert set(lda._repr_mimebundle_()) == {"text/plain"}


def test_displays_open_in_a_browser(tmp_path):
    page = tmp_path / "page.html"
    found = displays()
    body = "".join(f"<section>{html}</section>" for _, html in found)
    page.write_text(f"<!doctype html><meta charset=utf-8><title>clean</title>{body}")
    shown = in_browser(page)
    assert "<title>clean</title>" in shown
    assert shown.count("<section>") == len(found)
    assert shown.count("<caption") >= 10

"""Learning from documents in batches."""

import numpy as np
import pytest

import polyabayes as pb

LDA = pb.LatentDirichletAllocation
COUNTS = np.random.default_rng(0).poisson(1.5, (20, 6))
# Six topics of ten words each, and some weight on every word.
TOPICS = 0.1 / 60 + 0.9 * np.kron(np.eye(6), np.full(10, 0.1))


def corpus_of(topics, n_documents, seed):
    """Documents of these of the six topics."""
    return pb.datasets.make_lda_corpus(
        n_documents,
        topic_word=TOPICS[topics],
        document_length=50,
        doc_topic_prior=0.2,
        random_state=seed,
    ).corpus


def test_the_first_call_is_fit():
    model = LDA(3, max_iter=20, random_state=0).partial_fit(COUNTS)
    again = LDA(3, max_iter=20, random_state=0).fit(COUNTS)
    np.testing.assert_array_equal(model.components_, again.components_)


def test_batches_of_one_topic_add_up():
    # With one topic nothing is approximated: the topic is the posterior mean given all documents.
    model = LDA(1, topic_word_prior=0.3, max_iter=5, random_state=0)
    for start in range(0, 20, 5):
        model.partial_fit(COUNTS[start : start + 5])
    whole = LDA(1, topic_word_prior=0.3, max_iter=5, random_state=0).fit(COUNTS)
    np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-12)
    last, expected = model.last_sample_.topic_word, whole.last_sample_.topic_word
    np.testing.assert_allclose(last, expected, rtol=1e-12)
    assert model.topic_counts_.tolist() == [COUNTS.sum()]


@pytest.mark.slow
def test_two_halves_come_close_to_the_whole():
    """On average over chains, of which some stay in a mode that is not the best."""
    corpus = corpus_of(range(6), 900, 0)
    test = corpus_of(range(6), 300, 1)
    gains, rests = [], []
    for seed in range(5):
        options = {"n_components": 6, "doc_topic_prior": 0.2, "max_iter": 100, "random_state": seed}
        half = LDA(**options).fit(corpus[:450])
        whole = LDA(**options).fit(corpus)
        halves = LDA(**options).partial_fit(corpus[:450]).partial_fit(corpus[450:])
        assert halves.topic_counts_.sum() == corpus.n_tokens
        models = {"half": half, "halves": halves, "whole": whole}
        comparison = pb.compare(models, test, random_state=0)
        gain, gain_error = comparison.difference("halves", "half")
        assert gain > 4 * gain_error
        gains.append(gain)
        rests.append(comparison.difference("whole", "halves")[0])
    assert np.mean(rests) < 3 * np.std(rests, ddof=1) / np.sqrt(len(rests))
    assert np.median(rests) < np.median(gains)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_new_topics_are_seen_and_old_ones_kept():
    old, new = corpus_of([0, 1, 2], 300, 0), corpus_of([3, 4, 5], 300, 1)
    options = {"n_components": 6, "doc_topic_prior": 0.2, "max_iter": 100, "random_state": 0}
    first, second = LDA(**options).fit(old), LDA(**options).fit(new)
    both = LDA(**options).fit(old).partial_fit(new)
    for documents, other in ((old, second), (new, first)):
        models = {"other": other, "both": both}
        ahead, error = pb.compare(models, documents, random_state=0).difference("both", "other")
        # A model that knows half of the topics gives the words of the others next to nothing.
        assert ahead - 4 * error > 1


def test_equal_batches_have_streams_of_their_own():
    model = LDA(3, max_iter=20, random_state=0).fit(COUNTS)
    first = model.partial_fit(COUNTS).trace_.log_joint
    assert (model.partial_fit(COUNTS).trace_.log_joint != first).all()


def test_learned_priors_stay():
    model = LDA(3, max_iter=40, learn_priors=True, random_state=0).fit(COUNTS)
    alpha, beta = model.doc_topic_prior_, model.topic_word_prior_
    model.partial_fit(COUNTS)
    np.testing.assert_array_equal(model.doc_topic_prior_, alpha)
    assert model.topic_word_prior_ == beta
    assert model.last_sample_.topic_word_prior == beta


def test_a_loaded_model_goes_on(tmp_path):
    model = LDA(3, max_iter=20, random_state=0).fit(COUNTS[:10])
    model.save(tmp_path / "m")
    loaded = pb.load(tmp_path / "m").partial_fit(COUNTS[10:])
    model.partial_fit(COUNTS[10:])
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.topic_counts_, model.topic_counts_)


def test_words_are_matched():
    words = list("abcdef")
    model = LDA(2, max_iter=20, random_state=0).fit(pb.Corpus(COUNTS[:10], words))
    turned = pb.Corpus(COUNTS[10:, ::-1], words[::-1])
    model.partial_fit(turned)
    straight = LDA(2, max_iter=20, random_state=0).fit(pb.Corpus(COUNTS[:10], words))
    straight.partial_fit(COUNTS[10:])
    np.testing.assert_array_equal(model.components_, straight.components_)


def batch(documents, **options):
    """Train on a batch that is refused, and leaves the model."""
    model = LDA(2, max_iter=20, random_state=0).fit(pb.Corpus(COUNTS, list("abcdef")))
    before = model.components_.copy()
    try:
        model.set_params(**options).partial_fit(documents)
    finally:
        np.testing.assert_array_equal(model.components_, before)

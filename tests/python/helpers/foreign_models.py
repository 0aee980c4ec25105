"""Models of other packages, trained on a few texts."""

import warnings

import pytest


def of_tomotopy(kind, texts, documents=lambda _: {}, **options):
    """A model of tomotopy, of documents with what `documents` gives for their number."""
    model = getattr(pytest.importorskip("tomotopy"), kind)(seed=1, **options)
    for number, text in enumerate(texts):
        model.add_doc(text, **documents(number))
    return trained(model)


def trained(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        model.train(40, workers=1)
    return model


def of_gensim(texts, **options):
    """An LDA of gensim, and the bags that it was trained on."""
    dictionary = pytest.importorskip("gensim.corpora").Dictionary(texts)
    bags = [dictionary.doc2bow(text) for text in texts]
    options = {"num_topics": 2, "random_state": 0, **options}
    return pytest.importorskip("gensim.models").LdaModel(bags, id2word=dictionary, **options), bags

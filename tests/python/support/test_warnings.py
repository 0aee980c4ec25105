"""Warnings name the caller's line; a thread that is quiet does not silence others."""

import logging
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils._set_output import _SetOutputMixin

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes._support.warnings import quiet, warn
from polyabayes.sizes.choice import fits

# Filters of the process are for imports of other packages and the command line alone.
OF_THE_PROCESS = {"_support/output/arviz.py", "cli/__init__.py"}


def speak():
    with quiet(errors.EdgeWarning):
        warn("not this", errors.EdgeWarning)
        with quiet(errors.TargetWarning):
            warn("nor this", errors.EdgeWarning)
        warn("other", errors.TargetWarning)
    warn("this", errors.EdgeWarning)


def test_quiet_is_of_a_category_and_ends():
    with pytest.warns(errors.PolyabayesWarning) as told:
        speak()
    assert [str(one.message) for one in told] == ["other", "this"]
    assert {one.filename for one in told} == {__file__}


def test_an_error_opens_the_door_again():
    with pytest.raises(ZeroDivisionError), quiet():
        1 / 0  # noqa: B018
    with pytest.warns(errors.EdgeWarning):
        warn("this", errors.EdgeWarning)


def test_a_quiet_thread_neither_silences_nor_opens_others():
    """Two overlap, as fits in a thread pool do; filters of the process would be left behind."""
    before, both, first_ended = list(warnings.filters), threading.Barrier(2), threading.Event()

    def ends_first():
        with quiet():
            both.wait(10)
        first_ended.set()

    def ends_last():
        with quiet():
            both.wait(10)
            assert first_ended.wait(10)
            warn("silenced here", errors.EdgeWarning)

    with warnings.catch_warnings(record=True) as told, ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("always")
        running = [pool.submit(ends_first), pool.submit(ends_last)]
        for one in running:
            one.result()
        warn("given", errors.EdgeWarning)
    assert [str(one.message) for one in told] == ["given"]
    assert warnings.filters == before


def test_scores_of_folds_do_not_warn_in_threads(monkeypatch):
    plain = fits.held_out_scores

    def doubtful(*arguments):
        warn("errors of a fold", errors.UnreliableErrorWarning)
        return plain(*arguments)

    monkeypatch.setattr(fits, "held_out_scores", doubtful)
    counts = np.tile([[3, 1, 0, 0], [1, 2, 0, 1]], (4, 1))
    pfa = pb.PoissonFactorAnalysis(max_iter=4, burn_in=1, n_jobs=1, random_state=0)
    filters = list(warnings.filters)
    with warnings.catch_warnings(), ThreadPoolExecutor(3) as pool:
        warnings.simplefilter("error", errors.UnreliableErrorWarning)
        pb.choose_n_components(pfa, counts, [1, 2], n_folds=2, random_state=0, executor=pool)
        with pytest.raises(errors.UnreliableErrorWarning):
            doubtful()
    assert warnings.filters == filters


def test_the_package_changes_no_filters_of_the_process():
    package = Path(pb.__file__).parent
    changed = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "catch_warnings" in path.read_text("utf-8") and path.name != "warnings.py"
    }
    assert changed == OF_THE_PROCESS


def test_frames_of_scikit_learn_are_no_callers():
    class Wrapped(_SetOutputMixin):
        def transform(self, X):
            warn("of the data", errors.PriorWarning)
            return X

        def get_feature_names_out(self):
            return None

    with pytest.warns(errors.PriorWarning) as told:
        Wrapped().transform([[1]])
    assert told[0].filename == __file__


def test_the_log_is_silent_until_it_is_asked_for(capfd, caplog, tmp_path):
    lda = pb.LatentDirichletAllocation(2, max_iter=6, random_state=0, checkpoint=tmp_path)
    lda.fit([[2, 0], [0, 2]])
    assert capfd.readouterr() == ("", "")
    assert isinstance(logging.getLogger("polyabayes").handlers[0], logging.NullHandler)
    with caplog.at_level(logging.DEBUG, logger="polyabayes"):
        pb.LatentDirichletAllocation(2, max_iter=6, checkpoint=tmp_path / "b").fit([[2, 0], [0, 2]])
        pb.log_likelihood(lda, [[2, 0], [0, 2]])
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "training from sweep 0 to 6"
    assert any(line.startswith("checkpoint of sweep 6 in") for line in lines)
    assert lines[-1] == "2 documents scored"

"""Document models with any prior and given parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import dirichlet
from polyabayes.data.corpus import Corpus
from polyabayes.data.naming import by_topic, columns_by_name, rows_by_name
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.likelihood.core_parts import CoreParts
from polyabayes.likelihood.priors import checked_rows
from polyabayes.models.fitted.covariate_tables import covariate_frame, covariate_matrix
from polyabayes.models.fitted.covariates import design_of, pseudo_counts
from polyabayes.models.fitted.vocabularies import SeveralVocabularies, columns_of, texts_of
from polyabayes.models.simulation import documents_of_topics
from polyabayes.scale.shards import Shards

_DECODERS = ("mixture", "softmax")
_WEIGHTS = ("softmax", "identity")


@shared_docs
class DocumentModel(SeveralVocabularies):
    """A model of documents with any prior of topic weights, a decoder and given parameters.

    Make it by :meth:`dirichlet`, :meth:`mixture` or :meth:`logistic_normal`; the constructor only
    stores options. It is scored by :func:`~polyabayes.log_likelihood` and
    :func:`~polyabayes.compare`, and has ``transform``, ``score`` and ``save``, but no training.

    Documents may have several vocabularies (languages, measurements) that share topic weights. Give
    a list of topic-word arrays or a mapping from names, and documents as a list or mapping of
    corpora, or a MuData. Each vocabulary is normalised separately, conditional on its number of
    tokens, and has its own multiplicity. None in place of a corpus means no tokens, so that
    :func:`~polyabayes.log_completion` of ``[first, None]`` and ``[None, second]`` scores one
    vocabulary given the other.

    Parameters
    ----------
    prior : {"dirichlet", "mixture", "logistic-normal"}, default="dirichlet"
        Distribution of a document's topic weights.
    decoder : {"mixture", "softmax"}, default="mixture"
        Distribution of words given the weights: a mixture of topics, or a product of experts.
    weights : {"softmax", "identity"}, default="softmax"
        Map from latent coordinates to weights of a product of experts.
    covariate_names : sequence of str, optional
        Columns of a DataFrame that are the covariates, in order, if the prior depends on them.
    vocabulary_names : sequence of str, optional
        Names of the vocabularies, if there are several.
    {n_jobs}
    {seed of transform}
    {progress}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        Topics, or the loadings of a product of experts.
    prior_ : ndarray
        Dirichlet parameters, weights of components, or the mean of the latent coordinates: shape
        (n_components,), or a row for each document.
    covariance_ : ndarray of shape (n_coordinates, n_coordinates)
        Covariance of the latent coordinates.
    coefficients_ : ndarray of shape (n_coordinates, n_covariates)
        Coefficients of the prior's regression on covariates, if it has one.
    vocabulary_ : ndarray of str or None
        The words; several vocabularies are concatenated.
    vocabulary_sizes_ : ndarray of int, shape (n_vocabularies,)
        Numbers of words, if there are several vocabularies.

    References
    ----------
    D. Mimno and A. McCallum (2008). Topic models conditioned on arbitrary features with
    Dirichlet-multinomial regression. UAI.

    D. Blei and J. Lafferty (2007). A correlated topic model of Science. Annals of Applied
    Statistics 1.

    A. Srivastava and C. Sutton (2017). Autoencoding variational inference for topic models. ICLR.

    Examples
    --------
    >>> topics = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]
    >>> model = pb.DocumentModel.logistic_normal(topics, mean=[0.0], covariance=[[1.0]])
    >>> result = pb.log_likelihood(model, [[2, 0, 1]])
    >>> print(f"{result.total:.6f} {result.methods[0]}")
    -3.185396 exact
    """

    _default_event = "sequence"
    _conditions_on_length = True
    _arrays = ("components_", "prior_")
    _optional_arrays = ("covariance_", "bias_", "word_prior_", "coefficients_", "vocabulary_sizes_")

    prior_: Floats
    covariance_: Floats
    bias_: Floats
    coefficients_: Floats

    def __init__(
        self,
        prior: str = "dirichlet",
        *,
        decoder: str = "mixture",
        weights: str = "softmax",
        covariate_names: Sequence[str] | None = None,
        vocabulary_names: Sequence[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.prior = prior
        self.decoder = decoder
        self.weights = weights
        self.covariate_names = covariate_names
        self.vocabulary_names = vocabulary_names
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    @classmethod
    def dirichlet(
        cls,
        topic_word: Any,
        doc_topic_prior: Any = None,
        *,
        coefficients: Any = None,
        covariate_names: Sequence[str] | None = None,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make an LDA with a Dirichlet prior that may differ between documents.

        Parameters
        ----------
        topic_word : array of shape (n_components, n_words), or list or mapping of them
            Topics, with rows that sum to 1; several arrays are for several vocabularies.
        doc_topic_prior : array of shape (n_components,) or (n_documents, n_components)
            Dirichlet parameters of all documents, or of each; 0 excludes a topic.
        coefficients : array of shape (n_components, n_covariates), optional
            Instead of `doc_topic_prior`: the parameters are exp(coefficients @ x) at covariates x
            (Dirichlet-multinomial regression).
        covariate_names : sequence of str, optional
            Columns of a DataFrame that are the covariates, in order.
        vocabulary : sequence of str, optional
            The words; for several vocabularies, a list of sequences.
        {seed of transform}

        Returns
        -------
        DocumentModel

        {raises: bad parameters}

        Examples
        --------
        >>> topics = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]
        >>> model = pb.DocumentModel.dirichlet(topics, [[1.0, 0.0], [0.5, 0.5]])
        >>> pb.log_likelihood(model, [[2, 0, 1], [2, 0, 1]]).values.round(6).tolist()
        [-2.772589, -3.250625]
        """
        model = cls("dirichlet", covariate_names=covariate_names, random_state=random_state)
        model._set_topic_word(topic_word, vocabulary, random_state, normalised=True)
        model._set_prior("doc_topic_prior", doc_topic_prior, coefficients, topic_word)
        return model._checked_model()

    @classmethod
    def mixture(
        cls,
        topic_word: Any,
        weights: Any,
        *,
        is_dirichlet: bool = False,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make a mixture with one component per document: mixture of unigrams or GSDMM; exact.

        Parameters
        ----------
        topic_word : array of shape (n_components, n_words), or list or mapping of them
            Word probabilities of the components; with `is_dirichlet`, the parameters of their
            Dirichlet distributions, which are integrated out (GSDMM: prior plus counts of words).
        weights : array of shape (n_components,) or (n_documents, n_components)
            Prior weights of the components; they need not be normalised.
        is_dirichlet : bool, default=False
            Whether word probabilities are integrated out.
        vocabulary, random_state : optional
            As for :meth:`dirichlet`.

        Returns
        -------
        DocumentModel

        {raises: bad parameters}

        Examples
        --------
        >>> model = pb.DocumentModel.mixture([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], [0.5, 0.5])
        >>> model.transform([[2, 0, 1]]).round(3).tolist()
        [[0.899, 0.101]]
        """
        model = cls("mixture", random_state=random_state)
        is_dirichlet = checks.flag("is_dirichlet", is_dirichlet)
        model._set_topic_word(
            topic_word, vocabulary, random_state, normalised=True, is_dirichlet=is_dirichlet
        )
        model._set_prior("weights", weights, None, topic_word)
        return model._checked_model()

    @classmethod
    def logistic_normal(
        cls,
        topic_word: Any,
        mean: Any = None,
        covariance: Any = None,
        *,
        decoder: str = "mixture",
        bias: Any = None,
        weights: str = "softmax",
        coefficients: Any = None,
        covariate_names: Sequence[str] | None = None,
        vocabulary: Any = None,
        random_state: Any = None,
    ) -> Self:
        """Make a model with latent coordinates eta ~ N(mean, covariance), as in CTM, STM, ProdLDA.

        It is scored exactly by quadrature if the covariance has rank 1 or 2, else by annealed
        importance sampling from a fitted Gaussian, unbiased in p, at a cost of temperatures x
        chains x (distinct words x topics + rank^2).

        Parameters
        ----------
        topic_word : array of shape (n_components, n_words), or list or mapping of them
            Topics; for ``decoder="softmax"``, loadings of the words.
        mean : array of shape (n_coordinates,) or (n_documents, n_coordinates)
            Mean of all documents, or of each. There is one coordinate per component; or one fewer,
            with the last component as reference at coordinate 0 (STM).
        covariance : array of shape (n_coordinates, n_coordinates)
            Covariance; it may be singular.
        decoder : {"mixture", "softmax"}, default="mixture"
            p(w) = sum_k theta_k topic_word_kw, or softmax_w(bias + weights @ topic_word) (ProdLDA,
            NVDM, LDVAE).
        bias : array of shape (n_words,), optional
            Bias of the softmax decoder; default 0. For several vocabularies, a list of arrays.
        weights : {"softmax", "identity"}, default="softmax"
            Input of the softmax decoder: theta = softmax(eta), or eta itself.
        coefficients : array of shape (n_coordinates, n_covariates), optional
            Instead of `mean`: the means are coefficients @ x at covariates x (STM: its gamma,
            transposed).
        covariate_names, vocabulary, random_state : optional
            As for :meth:`dirichlet`.

        Returns
        -------
        DocumentModel

        {raises: bad parameters}

        Examples
        --------
        >>> loadings = [[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]]
        >>> model = pb.DocumentModel.logistic_normal(
        ...     loadings, [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], decoder="softmax"
        ... )
        >>> pb.log_likelihood(model, [[2, 0, 1]]).values.round(6).tolist()
        [-4.185261]
        """
        model = cls(
            "logistic-normal",
            decoder=checks.choice("decoder", decoder, _DECODERS),
            weights=checks.choice("weights", weights, _WEIGHTS),
            covariate_names=covariate_names,
            random_state=random_state,
        )
        model._set_topic_word(topic_word, vocabulary, random_state, normalised=True)
        n_components, n_words = model.components_.shape
        for name, is_given in (("bias", bias is not None), ("weights", weights != "softmax")):
            if decoder == "mixture" and is_given:
                raise InvalidArgumentError(f"{argument(name)} is only for decoder='softmax'")
        if decoder == "softmax":
            sizes = model._vocabulary_sizes()
            if bias is not None and sizes and np.ndim(bias[0]):
                bias = np.concatenate(texts_of("bias", bias, model.vocabulary_names, len(sizes)))
            bias = rows_by_name("bias", bias, model.vocabulary_)
            model.bias_ = checks.vector("bias", 0.0 if bias is None else bias, n_words)
        if covariance is None:
            raise InvalidTypeError(f"{argument('covariance')} must be given")
        covariance = by_topic("covariance", covariance, topic_word, axes=(0, 1))
        square = "(n_coordinates, n_coordinates)"
        model.covariance_ = checks.matrix("covariance", covariance, square)
        n_coordinates, n_columns = model.covariance_.shape
        has_reference = weights == "softmax"
        possible = (n_components, n_components - 1) if has_reference else (n_components,)
        if n_coordinates != n_columns or n_coordinates not in possible:
            beside = f", or {n_components - 1} with a reference" if has_reference else ""
            raise InvalidArgumentError(
                f"{argument('covariance')} has shape {model.covariance_.shape}: {n_components} "
                f"components need {n_components} rows and columns{beside}"
            )
        model._set_prior("mean", mean, coefficients, topic_word)
        return model._checked_model()

    _makers = "make it by dirichlet, mixture or logistic_normal"

    @property
    def _prior_argument(self) -> str:  # type: ignore[override]
        return "" if self.prior == "logistic-normal" else "doc_topic_prior"

    def _n_prior_parameters(self) -> int:
        return len(self.covariance_ if self.prior == "logistic-normal" else self.components_)

    def _has_prior_rows(self) -> bool:
        return self.prior_.ndim == 2 and not hasattr(self, "coefficients_")

    def _priors_of(self, documents: Corpus | Shards, covariates: Any) -> Floats | None:
        n_documents = documents.n_documents
        if hasattr(self, "coefficients_"):
            rows = self._covariates_of(documents, covariates)
            predicted = rows @ self.coefficients_.T
            return pseudo_counts(predicted) if self.prior == "dirichlet" else predicted
        if covariates is not None:
            raise InvalidArgumentError(
                f"{argument('covariates')}: the prior of this model does not depend on covariates"
            )
        if self._has_prior_rows():
            wanted = (n_documents, self._n_prior_parameters())
            return checked_rows("prior of the model", self.prior_, wanted)
        if (self.prior_ == 0).any() and self.prior == "dirichlet":
            return np.tile(self.prior_, (n_documents, 1))
        return None

    def _covariates_of(self, documents: Corpus | Shards, covariates: Any) -> Floats:
        """Covariates of documents, as given or from columns of their metadata."""
        n_covariates = self.coefficients_.shape[1]
        names = self.covariate_names
        if covariates is None and names is not None:
            covariates = getattr(documents, "metadata", None)
        wanted = (documents.n_documents, n_covariates)
        if covariates is None:
            columns = names and f" or documents with the metadata {', '.join(map(repr, names))}"
            raise InvalidArgumentError(
                f"{argument('covariates')}: the prior of this model depends on covariates; give "
                f"an array of shape {wanted}{columns or ''}"
            )
        covariates = rows_by_name("covariates", covariates, getattr(documents, "ids", None))
        frame = covariate_frame(covariates)
        if names is not None and frame is not None:
            covariates = design_of(frame, list(names))
        elif frame is not None:
            covariates = frame.to_numpy()
        return checked_rows("covariates", covariate_matrix(covariates), wanted)

    def _draw_documents(
        self, n_documents: int, sizes: Integers, priors: Floats | None, rng: np.random.Generator
    ) -> tuple[sparse.csr_matrix, NDArray[Any] | None]:
        shared = self.prior_ if priors is None else priors
        parameters = np.broadcast_to(shared, (n_documents, shared.shape[-1]))
        columns = columns_of(self._vocabulary_sizes() or [self.n_features_in_])
        if self.prior == "mixture":
            p = self._words_of_components(parameters, columns, rng)
            return sparse.csr_matrix(np.hstack([rng.multinomial(sizes, own) for own in p])), None
        if self.prior == "dirichlet":
            # A prior of 0 excludes a topic.
            with np.errstate(divide="ignore"):
                weights = dirichlet(rng, parameters, axis=1)
            counts = np.stack([rng.multinomial(sizes, weights) for _ in columns], axis=1)
            return documents_of_topics(counts, self.components_, rng, columns)
        factor = self._core_model().covariance_factor(parameters.shape[1])
        normals = rng.standard_normal((n_documents, factor.shape[1]))
        p = self._word_probabilities(parameters + normals @ factor.T, columns)
        return sparse.csr_matrix(np.hstack([rng.multinomial(sizes, own) for own in p])), normals

    def _words_of_components(
        self, weights: Floats, columns: list[slice], rng: np.random.Generator
    ) -> list[Floats]:
        """Probabilities of words of components that are drawn by the weights of each document."""
        ends = np.cumsum(weights, axis=1)
        below = rng.random((len(weights), 1)) * ends[:, -1:]
        drawn = (ends <= below).sum(axis=1)
        if not hasattr(self, "word_prior_"):
            return [self.components_[:, own][drawn] for own in columns]
        with np.errstate(divide="ignore"):
            return [dirichlet(rng, self.word_prior_[:, own][drawn], axis=1) for own in columns]

    def _word_probabilities(self, coordinates: Floats, columns: list[slice]) -> list[Floats]:
        """Probabilities of the words of each vocabulary at latent coordinates."""
        weights = coordinates
        if self.decoder == "mixture" or self.weights == "softmax":
            reference = np.zeros((len(coordinates), len(self.components_) - coordinates.shape[1]))
            weights = softmax(np.hstack([coordinates, reference]), axis=1)
        found = weights @ self.components_
        if self.decoder == "softmax":
            return [softmax(found[:, own] + self.bias_[own], axis=1) for own in columns]
        return [found[:, own] / found[:, own].sum(axis=1, keepdims=True) for own in columns]

    def _set_prior(self, name: str, values: Any, coefficients: Any, topic_word: Any) -> None:
        n, names = self._n_prior_parameters(), self.covariate_names
        values = by_topic(name, values, topic_word)
        coefficients = columns_by_name("coefficients", coefficients, names)
        coefficients = by_topic("coefficients", coefficients, topic_word, axes=(0,))
        if (values is None) == (coefficients is None):
            raise InvalidArgumentError(f"give {argument(name)} or {argument('coefficients')}")
        if coefficients is not None:
            found = checks.matrix("coefficients", coefficients, f"({n}, n_covariates)")
            if len(found) != n:
                raise InvalidArgumentError(
                    f"{argument('coefficients')} has shape {found.shape}: give a row for each of "
                    f"{n} parameters of the prior"
                )
            if not np.isfinite(found).all():
                raise InvalidArgumentError(f"{argument('coefficients')} must be finite")
            if names is not None and len(names) != found.shape[1]:
                raise InvalidArgumentError(
                    f"{argument('covariate_names')} are {len(names)}, and the columns of "
                    f"{argument('coefficients')} {found.shape[1]}: give one name for each"
                )
            self.coefficients_ = found
            self.prior_ = np.ones(n) if self.prior == "dirichlet" else np.zeros(n)
            return
        if names is not None:
            raise InvalidArgumentError(
                f"{argument('covariate_names')} needs {argument('coefficients')}"
            )
        prior = checks.floats(name, values)
        if prior.ndim not in (1, 2) or prior.shape[-1] != n:
            raise InvalidArgumentError(
                f"{argument(name)} has shape {prior.shape}: give ({n},), or (n_documents, {n})"
            )
        self.prior_ = np.ascontiguousarray(prior)

    def _checked_model(self) -> Self:
        """Return the model after the core has accepted its parameters."""
        prior = np.atleast_2d(self.prior_)
        is_bad = ~np.isfinite(prior)
        if self.prior != "logistic-normal":
            is_bad |= (prior < 0) | ~(prior > 0).any(axis=1, keepdims=True)
        for row, place in np.argwhere(is_bad)[:1]:
            at = place if self.prior_.ndim == 1 else f"{row}, {place}"
            rule = " and not negative, and one of each row positive"
            raise InvalidArgumentError(
                f"the prior has {prior[row, place]} at [{at}]; its parameters must be finite"
                f"{'' if self.prior == 'logistic-normal' else rule}"
            )
        self._core_model()
        return self

    def _core_parts(self) -> CoreParts:
        # A row for each document replaces the common prior.
        shared = self.prior_ if self.prior_.ndim == 1 else np.ones(self.prior_.shape[1])
        sizes = tuple(self._vocabulary_sizes())
        if self.prior == "mixture":
            is_dirichlet = hasattr(self, "word_prior_")
            words = self.word_prior_ if is_dirichlet else self.components_
            return CoreParts("mixture", (shared, words), (is_dirichlet,), sizes)
        if self.prior == "dirichlet":
            alpha = np.where(shared > 0, shared, 1.0)
            return CoreParts("lda", (alpha, self.components_), (), sizes)
        if self.decoder == "mixture":
            parts = self.components_, shared, self.covariance_
            return CoreParts("logistic_normal", parts, (), sizes)
        experts = (self.components_, self.bias_, shared, self.covariance_)
        return CoreParts("product_of_experts", experts, (self.weights == "softmax",), sizes)

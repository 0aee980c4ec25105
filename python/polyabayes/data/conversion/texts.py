"""Word counts of raw texts by scikit-learn's CountVectorizer, stemmed by PyStemmer."""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.optional import import_optional
from polyabayes._support.output.tables import some
from polyabayes.data.conversion.table import Table
from polyabayes.data.counts import CountMatrix, Words
from polyabayes.data.names import CALLS, NAMES, refusal, say, warn
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

Analyzer = Callable[[str], list[str]]
Place = Callable[[int], str]

ON_EMPTY = ("raise", "drop", "keep")
# Items have at most so many words.
_MOST_PLACES, _TEXTS_LOOKED_AT, _WORDS_OF_ITEM = 50, 200, 4
# Items of orders, after how many there are.
_TIMES = r"(\d+) ?[×x] ([^,;]+)"
# scikit-learn's default token_pattern, and what it cannot divide: a run of letters of Thai, Lao,
# Burmese, Khmer, Japanese or Chinese that is longer than a word.
_WORDS = re.compile(r"(?u)\b\w\w+\b")
_TIME = re.compile(r"[\[(]?\d+:\d[\d:.,]*[\])]?")
# Markup, and what stands above texts or before what is said: pattern, what it is, what drops it.
_KINDS = [x.split("\t") for x in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()]
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{5}")
# The list of scikit-learn, by its name; other languages use the package stop-words.
_OWN_LIST = "english"


def _own_tokens(document: Any) -> list[str]:
    """Tokens, unchanged; a single word, such as a stop word, is one token."""
    return [document] if isinstance(document, str) else list(document)


_OF_TOKENS: dict[str, Any] = {"tokenizer": _own_tokens, "preprocessor": lambda document: document}
_OF_TOKENS |= {"lowercase": False, "token_pattern": None}


def checked_on_empty(on_empty: Any) -> str | None:
    """Check `on_empty`: one of three options, or None for the default."""
    return None if on_empty is None else checks.choice("on_empty", on_empty, ON_EMPTY)


def places_of(rows: Iterable[int], place: Place) -> str:
    """Places of rows, as many as fit into a message."""
    places = [place(int(row)) for row in rows]
    more = f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
    return ", ".join(places[:_MOST_PLACES]) + more


def without_missing(table: Table, column: str, on_empty: str | None) -> list[Any]:
    """Documents of a column; missing values become empty texts if `on_empty` allows them.

    R and pandas write some of them as texts of their own.
    """
    texts = [None if str(text) in NAMES["no text"] else text for text in table.values(column)]
    missing = [row for row, text in enumerate(texts) if text is None]
    if missing and on_empty in (None, "raise"):
        options = f"{table.options(on_empty='drop')} or {table.options(on_empty='keep')}"
        places = places_of(missing, table.place)
        raise InvalidArgumentError(f"no document in column {column!r} at {places}: use {options}")
    return ["" if text is None else text for text in texts]


def vectoriser_of(vocabulary: Any, options: Mapping[str, Any], *, are_tokens: bool = False) -> Any:
    """A CountVectorizer with its own options and `stem`, and stop words of many languages.

    It reads texts, or lists of tokens, which stay unchanged.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    own = {**options, **(_OF_TOKENS if are_tokens else {})}
    stem = own.pop("stem", None)
    if "ngram_range" in own:
        own["ngram_range"] = tuple(checks.entries("ngram_range", own["ngram_range"]))
    stop_words = own.get("stop_words")
    try:
        if isinstance(stop_words, str) and stop_words != _OWN_LIST:
            words = CountVectorizer(**{**own, "stop_words": None, "ngram_range": (1, 1)})
            own["stop_words"] = stop_words_of(stop_words, words.build_analyzer())
        vectoriser = CountVectorizer(vocabulary=vocabulary, **own)
    except TypeError as error:
        raise InvalidArgumentError(f"unknown text option: {error}") from error
    if stem is not None:
        if not (isinstance(stem, str) and stem.isascii()):
            raise checks.wrong_type("stem", stem, say("stem", stem))
        vectoriser.set_params(**_OF_TOKENS | {"tokenizer": _stemmer(stem, own), "stop_words": None})
    return vectoriser


def check_text_options(options: Mapping[str, Any]) -> None:
    """Refuse unknown options and invalid values before any text is read."""
    if not options:
        return
    try:
        vectoriser_of(None, options).fit(["urn"])
    except ValueError as error:
        # Other errors say that no word is left of so short a text.
        if isinstance(error, TypeError):
            raise InvalidArgumentError(f"a text option is not valid: {error}") from error
        if isinstance(error, InvalidArgumentError):
            raise


def count_texts(
    texts: Iterable[Any], vocabulary: Words | None, options: Mapping[str, Any], *, are_tokens: bool
) -> tuple[CountMatrix, Words]:
    """Count the words of texts, or of lists of tokens.

    Words that are not in a given vocabulary are dropped; `options` are those of CountVectorizer,
    and ``stem``.
    """
    words = None if vocabulary is None else vocabulary.tolist()
    vectoriser = vectoriser_of(words, options, are_tokens=are_tokens)
    try:
        if not are_tokens:
            texts = checked_texts(texts)
            if not {"token_pattern", "tokenizer", "analyzer", "preprocessor"} & options.keys():
                for warn_of in (_warn_of_scripts, _warn_of_items, _warn_of_labels):
                    warn_of(texts[:_TEXTS_LOOKED_AT])
        counts = vectoriser.fit_transform(texts)
    except InvalidTypeError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the words cannot be counted: {error}") from error
    return counts, np.array([str(x) for x in vectoriser.get_feature_names_out()], dtype=object)


def _warn_of_scripts(texts: list[str]) -> None:
    """Warn of texts that blanks and words of two letters do not divide, as those of Chinese.

    Vowel signs, as those of Hindi, and accents apart from their letters divide words.
    """
    words = chain.from_iterable(map(_WORDS.findall, texts))
    n_letters, n_kept = (sum(map(str.isalpha, "".join(part))) for part in (texts, words))
    are_cut = [any(unicodedata.category(sign)[0] == "M" for sign in set(text)) for text in texts]
    are_whole = map(bool, map(_UNSPACED.search, texts))
    signs = 2 * n_kept < n_letters, *(2 * sum(x) > len(texts) for x in (are_whole, are_cut))
    for why in [*compress(say("scripts", 1 - n_kept / max(n_letters, 1)).split("|"), signs)][:1]:
        warn(why + CALLS["letters"])


def _warn_of_items(texts: list[str]) -> None:
    """Warn of lists of items, such as baskets: a few words each, and no sentences."""
    texts = [html.unescape(text) for text in texts if text.strip()]
    if 2 * sum(map(bool, map(re.compile(_TIMES).match, texts))) > len(texts):
        warn(say("items counted", texts[0], _TIMES))
        return
    for sep in (*";|,", "||", " / ", "\n"):
        items = [item for text in texts for x in text.split(sep) if (item := x.strip())]
        key = sep.strip(" ")[0]
        are_short = all(x.count(" ") < _WORDS_OF_ITEM and x[-1:] not in ".!?" for x in items)
        # Answers to choose from recur, however long they are.
        are_short |= sep == ";" and 2 * len({*items}) < len(items)
        are_short &= key not in "".join(items)
        # Verses and phrases are short, too, but seldom recur.
        is_plain = sep[0] not in " \n"
        is_long = is_plain and any(text.count(sep) > 1 for text in texts)
        is_list = is_long or len({*items}) * (2 - is_plain) < len(items) > len(texts)
        if are_short and is_list and not all(map(_WORDS.fullmatch, items)):
            # Signs within brackets divide nothing.
            is_plain = not any(re.search(rf"\([^)]*{re.escape(key)}", text) for text in texts)
            rest = rf"[^{key}]*[^{key}\s]" if is_plain else rf"\s*(?:\([^()]*\)|[^{key}\s(])"
            option = argument("token_pattern", rf"[^{key}\s](?:{rest}){'?*'[not is_plain]}")
            option += f", {argument('lowercase', False)}" * (items != [x.lower() for x in items])
            warn(say("lists", sep=sep, option=option))
            return


def _warn_of_labels(texts: list[str]) -> None:
    """Warn of markup, headers of mails, and lines that begin with the same labels, as speakers."""
    code, found = "text", list[str]()
    for pattern, what, own in _KINDS:
        held = [[x.group(x.re.groups) for x in re.finditer(pattern, text)] for text in texts]
        held = [[_TIME.sub("", x).strip(" \t\n:->") or "0:00" for x in each] for each in held]
        labels = [label for label, n in Counter(chain(*held)).items() if n > 1]
        # Markup is no word, even in a few texts.
        most = 10 if what == _KINDS[0][1] else 2
        if most * sum(not {*each}.isdisjoint(labels) for each in held) > len(texts):
            found.append(f"{what}, as {some(labels, 4)}")
            code = code.replace("text", own.format(repr(pattern)))
            if what != _KINDS[0][1]:  # Only markup may stand beside others.
                break
    if found:
        warn(say("labels", "; ".join(found), code))


def checked_texts(texts: Iterable[Any]) -> list[str]:
    """Iterate over texts; other values are refused."""
    checked = list(texts)
    for number, text in enumerate(checked):
        if not isinstance(text, str):
            remedy = "decode it" if isinstance(text, bytes) else "use pandas.Series(texts).dropna()"
            raise InvalidTypeError(f"document {number} is {text!r:.60}, not a text: {remedy}")
    return checked


def stop_words_of(language: str, analyze: Analyzer = _own_tokens) -> list[str]:
    """The stop words of a language, and the tokens that an analyzer divides them into."""
    if language == _OWN_LIST:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return sorted(ENGLISH_STOP_WORDS)
    why = f"stop words of {language!r} need the package stop-words"
    stop_words = import_optional("stop_words", why, "stem")
    if language not in (known := stop_words.AVAILABLE_LANGUAGES):
        raise refusal("no stop words", argument("stop_words", language), ", ".join(known))
    return sorted({x for y in stop_words.get_stop_words(language) for x in (y, *analyze(y))})


def _stemmer(language: str, options: Mapping[str, Any]) -> Analyzer:
    Stemmer = import_optional("Stemmer", "stemming needs PyStemmer", "stem")
    checks.choice("stem", language, tuple(Stemmer.algorithms()))
    stemmer = Stemmer.Stemmer(language)
    if options.get("analyzer", "word") != "word":
        raise InvalidArgumentError("stem works on words only; leave analyzer at 'word'")
    from sklearn.feature_extraction.text import CountVectorizer

    words_of: Analyzer = CountVectorizer(**{**options, "ngram_range": (1, 1)}).build_analyzer()

    return lambda text: stemmer.stemWords(words_of(text))

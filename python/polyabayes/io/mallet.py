"""Documents of MALLET: the text files that it imports."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyabayes._support.files import read_lines
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.names import say
from polyabayes.exceptions import FileFormatError
from polyabayes.io.tabular.delimited import encoding_code, text_code
from polyabayes.io.text import corpus_of_texts

# MALLET's own: csv import --line-regex; \s of Java is that of ASCII.
_LINE = re.compile(r"^(\S*)[\s,]*(\S*)[\s,]*(.*)$", re.ASCII)


def read_mallet(
    path: Path, vocabulary: Words | None = None, *, encoding: str = "utf-8", **options: Any
) -> Corpus:
    r"""Read what MALLET's ``import-file`` reads: lines of ``name label text``, without the labels.

    As in MALLET, texts are lower-cased and ``token_pattern`` is ``\p{L}[\p{L}\p{P}]+\p{L}``. For
    files imported with ``--token-regex '\S+'``, use ``token_pattern=r"(?a:\S+)"``; with
    ``--remove-stopwords``, give its list as ``stop_words``.
    """
    lines = [line for line in read_lines(path, encoding) if line.strip()]
    parts = [match for line in lines if (match := _LINE.match(line))]
    names, texts = ([match[k] for match in parts] for k in (1, 3))
    seps = [x for x in ("\t", '",') if all(line.count(x) > (x == "\t") for line in lines)]
    heads = [line.partition(seps[0])[0].strip() for line in lines] if seps else []
    if blank := [name for name in heads if " " in name]:
        given = "sep='\\t', quoting=3, " * (seps[0] == "\t"), encoding_code(encoding)
        raise FileFormatError(say("mallet", str(path), blank[0], seps[0], *given))
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        code = f"[' '.join(line.split()[2:]) for line in {text_code(path, encoding)}.splitlines()]"
        raise FileFormatError(say("same names", path, twice[0], code))
    if "token_pattern" not in options and "analyzer" not in options:
        # Words to leave out are divided as the texts are.
        left_out = [string.ascii_letters, *(options.get("stop_words") or ())]
        options = {"token_pattern": _token_pattern([*texts, *left_out]), **options}
    return corpus_of_texts(path, names, texts, vocabulary, options)


def _token_pattern(texts: Iterable[str]) -> str:
    r"""MALLET's \p{L}[\p{L}\p{P}]+\p{L}, its classes spelt by the characters that occur."""
    kinds = {c: unicodedata.category(c)[0] for text in texts for c in text + text.lower()}
    letters, marks = ("".join(re.escape(c) for c in sorted(kinds) if kinds[c] == x) for x in "LP")
    # A class of characters must not be empty, and no token lacks a letter.
    letters = letters or "a"
    return f"[{letters}][{letters}{marks}]+[{letters}]"

"""One text becomes its words: the paper's preprocessing, with NLTK's word tokenizer.

`nltk.word_tokenize` finds sentences first, with data that it would have to download, in order to
take the full stop off the last word of each. Here every word between spaces goes to NLTK's
tokenizer by itself, which takes a full stop off; initials such as U.S. keep theirs. All other rules
of NLTK look no further than one word: so the same words need to be looked at only once, and what
is letters and digits between common symbols not at all: NLTK needs some 50 µs for a word.
"""

import re
from functools import lru_cache
from itertools import chain
from typing import Final

import pyarrow as pa
from nltk.tokenize.destructive import NLTKWordTokenizer

_PLAIN: Final = re.compile(
    r"""[("\[{<#@$*%&;!?“„«]*+ ([^\W_]++(?:-[^\W_]++)*+) [)"\]}>.,;:?!*%&#@$”»]*+""", re.VERBOSE
)
_SPLIT_INSIDE: Final = re.compile("cannot|gimme|gonna|gotta|lemme|wanna", re.IGNORECASE)
_URL: Final = re.compile(r"\b(?:https?://|www\.\w).*", re.IGNORECASE)
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.){2,}")
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")
_KNOWN_WORDS: Final = 1 << 18
"""Words whose tokens are remembered: nearly all words of a text, in some 50 MB at most."""

_tokenize: Final = NLTKWordTokenizer().tokenize


def token_lists(texts: pa.Array, longest: int) -> pa.LargeListArray:
    """Return a list of tokens for each text, and null for null."""
    lists = [None if text is None else tokens(text, longest) for text in texts.to_pylist()]
    return pa.array(lists, pa.large_list(pa.large_string()))


def tokens(text: str, longest: int = 1) -> list[str]:
    """Return the words of a text, then its sequences of two words, and so on up to `longest`."""
    words = list(chain.from_iterable(map(_words, text.split())))
    found = words.copy()
    for length in range(2, longest + 1):
        found += map(" ".join, zip(*(words[start:] for start in range(length)), strict=False))
    return found


@lru_cache(maxsize=_KNOWN_WORDS)
def _words(word: str) -> tuple[str, ...]:
    """Return the tokens of what stands between two spaces: often one, none of a URL or symbol."""
    plain = _PLAIN.fullmatch(word)
    if plain and not _SPLIT_INSIDE.search(word):
        return (plain[1].lower(),)
    if _INITIALS.fullmatch(word):
        return (word.lower(),)
    return _words_by_nltk(word)


def _words_by_nltk(word: str) -> tuple[str, ...]:
    found = map(_without_stop, _tokenize(_URL.sub("", word)))
    return tuple(token.lower() for token in found if _LETTER_OR_DIGIT.search(token))


def _without_stop(token: str) -> str:
    """Take off a full stop that NLTK left because of what came next, as the tag in end.<br."""
    return token if _INITIALS.fullmatch(token) else token.removesuffix(".")

"""Texts become the words of the paper's preprocessing."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.tokenize.destructive import NLTKWordTokenizer

from dp_sips.text import tokenizer
from dp_sips.text.tokenizer import token_lists, tokens

CASES = {
    "Tea, Jam & RICE!": ["tea", "jam", "rice"],
    "It's what I can't have": ["it", "'s", "what", "i", "ca", "n't", "have"],
    "I cannot. Don't! Gonna?": ["i", "can", "not", "do", "n't", "gon", "na"],
    "The end. A new one.<br />And more.": ["the", "end", "a", "new", "one", "br", "and", "more"],
    "The U.S. and the e.g. of Mr. X.": ["the", "u.s.", "and", "the", "e.g.", "of", "mr", "x"],
    "see https://a.org/b?c=d, (http://a.org) www.b.net.": ["see"],
    "[here](HTTPS://a.org/x) www": ["here", "www"],
    "3,000 at 5:30 for 2.5% state-of-the-art": ["3,000", "at", "5:30", "for", "2.5", "state-of-the-art"],  # noqa: E501
    "#tag @user well—yes wait... so--what": ["tag", "user", "well", "yes", "wait", "so", "what"],
    "“quoted” ‘words’ \"are\" 'words'": ["quoted", "words", "are", "words"],
    "naïve Straße 東京": ["naïve", "straße", "東京"],
    "-- ... ** _ 😀 <> ``": [],
    " \n\t": [],
    "": [],
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_words(text: str) -> None:
    assert tokens(text) == CASES[text]


PARTS = [
    *"aB35-.,:;'\"()[]<>*%#@$&!?“”’‘«»`_/é²—",
    *("film", "Can", "not", "gonna", "wanna", "n't", "'s", "--", "...", "u.s.", "http://", "www."),
]
odd_words = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)


@given(odd_words | st.text(max_size=8).filter(lambda text: len(text.split()) == 1))
@example("cannot")
@example("gonna-be")
@example(",5")
def test_what_needs_no_nltk_is_what_nltk_would_say(word: str) -> None:
    if not tokenizer._INITIALS.fullmatch(word):
        assert tokenizer._words(word) == tokenizer._words_by_nltk(word)


@given(st.lists(st.sampled_from(["It's", "tea,", "(jam)", "can't", '"rice"', "don't", "5%"])))
def test_words_one_by_one_are_those_of_the_text(words: list[str]) -> None:
    """NLTK looks across spaces only for full stops."""
    whole = NLTKWordTokenizer().tokenize(" ".join(words))
    assert tokens(" ".join(words)) == [t.lower() for t in whole if any(map(str.isalnum, t))]


def test_ngrams_are_sequences_of_words_without_symbols() -> None:
    found = tokens("To be, or not!", longest=3)
    assert found[:4] == ["to", "be", "or", "not"]
    assert found[4:7] == ["to be", "be or", "or not"]
    assert found[7:] == ["to be or", "be or not"]


@given(st.integers(0, 8), st.integers(1, 6))
def test_the_number_of_ngrams(length: int, longest: int) -> None:
    found = tokens(" ".join("abcdefgh"[:length]), longest)
    assert len(found) == sum(max(0, length - n + 1) for n in range(1, longest + 1))


def test_nulls_stay_nulls() -> None:
    lists = token_lists(pa.array(["a b", None, "", "-"]), 1)
    assert lists.to_pylist() == [["a", "b"], None, [], []]

"""words and ngrams: what can be asked for."""

from typing import Any

import pytest

from dp_sips import UsageError, text


def test_words_are_ngrams_of_one() -> None:
    assert text.words("body") == text.ngrams("body", 1) == text.TextItems("body")
    assert text.words().column is None


@pytest.mark.parametrize("longest", [0, -1, 1.5, True, "2", None], ids=repr)
def test_lengths_that_are_none(longest: Any) -> None:
    with pytest.raises(UsageError, match=f"ngrams must be a whole .* at least 1, got {longest!r}"):
        text.ngrams("body", longest)


@pytest.mark.parametrize("processes", [0, -2, 0.5], ids=repr)
def test_numbers_of_processes_that_are_none(processes: Any) -> None:
    with pytest.raises(UsageError, match=f"processes must be .*, got {processes!r}"):
        text.words("body", processes=processes)

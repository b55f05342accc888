"""Hugging Face tokenizers load a vocabulary of released words."""

import sys
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace

folder = Path(sys.argv[1])
words = (folder / "words.txt").read_text("utf-8").splitlines()
vocabulary = folder / "vocab.txt"
vocabulary.write_text("\n".join(["[UNK]", *words]) + "\n", "utf-8")
tokenizer = Tokenizer(WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))  # noqa: S106
tokenizer.pre_tokenizer = Whitespace()
print(tokenizer.encode("tea or gin").tokens)
assert tokenizer.encode("tea or gin").tokens == ["tea", "or", "[UNK]"]

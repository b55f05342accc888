"""A process that takes texts apart: arrays of texts come in on stdin, lists of tokens go out."""

import sys
from contextlib import suppress

from dp_sips.text.tokenizer import token_lists
from dp_sips.text.workers import receive, send


def main() -> None:
    """Answer until the input ends."""
    longest = int(sys.argv[1])
    with suppress(BrokenPipeError):
        while (texts := receive(sys.stdin.buffer)) is not None:
            send(sys.stdout.buffer, token_lists(texts, longest))


if __name__ == "__main__":
    main()

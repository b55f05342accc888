"""dp-sips completion: what a shell needs to complete commands, flags and the names they take."""

import argparse
from typing import Final

from dp_sips.cli.general import LEVELS, add_general
from dp_sips.cli.parser import COMMANDS, Parser, configured
from dp_sips.cli.streams import emit
from dp_sips.errors import UsageError, did_you_mean
from dp_sips.mechanisms import MECHANISMS

_EXAMPLES: Final = """\
The script completes commands, flags, and the names that --mechanism, --engine, --nulls and
--format take; everything else is completed as a file.

examples:
  dp-sips completion bash > ~/.local/share/bash-completion/completions/dp-sips
  dp-sips completion zsh > "${fpath[1]}/_dp-sips"
  dp-sips completion fish > ~/.config/fish/completions/dp-sips.fish"""

_VALUES: Final = {
    "--mechanism": ("auto", *MECHANISMS),
    "--engine": ("auto", "memory", "spark", "reference"),
    "--nulls": ("error", "drop", "group"),
    "--log-level": LEVELS,
    "--format": ("csv", "txt", "jsonl", "parquet", "arrow"),
}

_BASH: Final = """\
# bash completion of dp-sips, made by: dp-sips completion bash
_dp_sips() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands} --help --version"
    else
        case "$before" in
{values}
        *) case "${{COMP_WORDS[1]}}:$word" in
{flags}
            esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _dp_sips dp-sips
"""

_ZSH: Final = """\
#compdef dp-sips
# zsh completion of dp-sips, made by: dp-sips completion zsh
_dp_sips() {{
    local -a words_here
    if (( CURRENT == 2 )); then
        words_here=({commands} --help --version)
    else
        case "${{words[CURRENT-1]}}" in
{values}
        *) case "${{words[2]}}:${{words[CURRENT]}}" in
{flags}
            esac ;;
        esac
    fi
    (( $#words_here )) && compadd -- $words_here || _files
}}
if [[ $funcstack[1] == _dp-sips ]]; then _dp_sips "$@"; else compdef _dp_sips dp-sips; fi
"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if args.shell is None:
        raise UsageError(f"SHELL is missing: give one of {', '.join(scripts)}")
    if args.shell not in scripts:
        raise UsageError(f"unknown shell {args.shell!r}: {did_you_mean(args.shell, scripts)}")
    emit(scripts[args.shell]().rstrip("\n"))


def _bash() -> str:
    return _BASH.format(
        commands=" ".join(COMMANDS),
        values=_cases({flag: " ".join(names) for flag, names in _VALUES.items()}, 'words="{}"', 8),
        flags=_cases({f"{c}:-*": " ".join(_flags(c)) for c in COMMANDS}, 'words="{}"', 12),
    )


def _zsh() -> str:
    return _ZSH.format(
        commands=" ".join(COMMANDS),
        values=_cases({f: " ".join(names) for f, names in _VALUES.items()}, "words_here=({})", 8),
        flags=_cases({f"{c}:-*": " ".join(_flags(c)) for c in COMMANDS}, "words_here=({})", 12),
    )


def _fish() -> str:
    lines = ["# fish completion of dp-sips, made by: dp-sips completion fish"]
    lines += [
        f"complete -c dp-sips -f -n __fish_use_subcommand -a {name} -d '{summary}'"
        for name, summary in COMMANDS.items()
    ]
    lines += [
        f"complete -c dp-sips -n '__fish_seen_subcommand_from {name}' -l {flag.lstrip('-')}{value}"
        for name in COMMANDS
        for flag in _flags(name)
        for value in (f" -x -a '{' '.join(_VALUES[flag])}'" if flag in _VALUES else "",)
    ]
    return "\n".join(lines)


def _cases(words: dict[str, str], action: str, indent: int) -> str:
    return "\n".join(
        f"{' ' * indent}{case}) {action.format(listed)} ;;" for case, listed in words.items()
    )


def _flags(name: str) -> list[str]:
    """Return the flags of a command, such as --user, from its parser."""
    parser = configured(name)
    add_general(parser)
    return sorted(parser.flags)

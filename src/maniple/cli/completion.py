"""`maniple completion`: what a shell needs to complete commands, options and their values."""

from enum import StrEnum
from typing import Annotated

import typer


class CompletionShell(StrEnum):
    """The shells that `maniple completion` knows."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


PROGRAM = "maniple"
COMPLETE_VARIABLE = "_MANIPLE_COMPLETE"
"""The variable by which a shell asks the program for completions."""


def completion(
    context: typer.Context,
    shell: Annotated[CompletionShell, typer.Argument(help="Your shell.", show_default=False)],
) -> None:
    """Print a script that completes commands and options with the Tab key.

    \b
    Examples:
      echo 'source <(maniple completion bash)' >> ~/.bashrc
      echo 'source <(maniple completion zsh)' >> ~/.zshrc        after compinit
      maniple completion fish > ~/.config/fish/completions/maniple.fish

    \b
    The script asks the program itself, so it need not be renewed after an update. Zsh and fish
    call it as maniple: the folder of maniple must be in PATH. Open a new shell afterwards.

    \b
    Exit status: 0 printed, 2 wrong usage.
    """
    from typer.completion import show_callback

    show_callback(context, context.command.params[0], shell.value)

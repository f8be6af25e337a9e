"""A person's answer at the prompt, with its editing."""

from typing import Any

from maniple.cli.decisions import Edit, Unchanged, Unclear, decide, edited
from maniple.cli.editor import EditorFailure, edit
from maniple.cli.prompt import Prompt
from maniple.cli.screens import Screens
from maniple.cli.session import Session, Waiting


async def answer_to(
    waiting: Waiting, line: str, session: Session, prompt: Prompt, screens: Screens
) -> Any | None:
    """Return the answer that `line` is, or what is edited then; None, with words, if it is none yet."""
    try:
        decision = decide(waiting.question, line)
        if not isinstance(decision, Edit):
            return decision
        text = await _edited_text(decision, waiting, prompt)
        members = session.options.enabled(session.available)
        answer = edited(waiting.question, text, members, session.most_steps)
    except (Unclear, EditorFailure) as error:
        screens.note(str(error), "yellow")
    except Unchanged:
        screens.note("Nothing was changed.", "dim")
    else:
        return answer
    return None


async def _edited_text(what: Edit, waiting: Waiting, prompt: Prompt) -> str:
    """Let the text be edited, or what was made of it before, which is kept until it can be used."""
    try:
        waiting.draft = await edit(Edit(waiting.draft or what.text, what.suffix), prompt)
    except (EOFError, KeyboardInterrupt):
        return ""
    return waiting.draft

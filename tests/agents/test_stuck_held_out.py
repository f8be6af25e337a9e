"""Stuck agents are recognised also in patterns that were not used to build the detector."""

from tests.agents.patterns import PROGRESS as KNOWN_PROGRESS
from tests.agents.patterns import STUCK as KNOWN_STUCK
from tests.agents.patterns import Answer, alone, did
from tests.agents.progress_held_out import PROGRESS
from tests.agents.stuck_held_out import STUCK
from tests.agents.test_stuck_detector import findings_of


def left_alone(patterns: dict[str, list[Answer]]) -> set[str]:
    return {name for name, answers in patterns.items() if set(findings_of(answers)) == {""}}


def ended(patterns: dict[str, list[Answer]]) -> set[str]:
    return {name for name, answers in patterns.items() if findings_of(answers)[-2:] == ["nudge", "end"]}


def test_there_are_thirty_of_each_and_none_is_an_old_one():
    assert (len(STUCK), len(PROGRESS)) == (30, 30)
    assert not {*STUCK, *PROGRESS} & {*KNOWN_STUCK, *KNOWN_PROGRESS}


def test_at_most_one_who_is_stuck_is_missed():
    assert len(STUCK.keys() - ended(STUCK)) <= 1


def test_at_most_one_progressing_agent_is_judged_stuck():
    assert len(PROGRESS.keys() - left_alone(PROGRESS)) <= 1


def test_a_comment_makes_no_other_program_and_an_anchor_no_other_page():
    programs = alone(
        *(did("bash_tool", "3\n", cmd=f"# look once more, {n}\nls | wc -l # {n}") for n in range(8))
    )
    pages = alone(*(did("go", "Opened.", url=f"https://a.test/x#part-{n}") for n in range(8)))
    assert ended({"programs": programs, "pages": pages}) == {"programs", "pages"}


def test_a_hash_that_is_no_comment_and_no_anchor_counts():
    patterns = {
        "colours": alone(*(did("paint", "ok", colour=f"#{n:06x}") for n in range(12))),
        "headings": alone(*(did("write", "ok", text=f"# Part {n}") for n in range(12))),
        "routes": alone(*(did("go", "Opened.", url=f"https://a.test/#/order/{n}") for n in range(12))),
        "strings": alone(*(did("python_repl_tool", "ok", code=f"paint('a #{n}')") for n in range(12))),
    }
    assert left_alone(patterns) == patterns.keys()


def test_announcing_an_action_is_no_progress():
    says = alone(*(did("bash_tool", f"now to part {n}\n", cmd=f"echo now to part {n}") for n in range(12)))
    does = alone(
        *(
            did("bash_tool", f"made part {n}\n", cmd=f"touch part-{n}.md && echo made part {n}")
            for n in range(12)
        )
    )
    assert ended({"says": says, "does": does}) == {"says"}
    assert left_alone({"says": says, "does": does}) == {"does"}

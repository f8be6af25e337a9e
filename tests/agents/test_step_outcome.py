"""Outcomes of steps: what a member's text says about its step, however the model formats it."""

import pytest

from maniple.agents.step_outcome import NO_REASON, NOT_SAID, StepOutcome, parse_answer, parse_failure
from maniple.agents.task import NEEDED_FOR_IT
from tests.agents.outcome_answers import DONE, DONE_AFTER, FAILED, FAILED_AFTER, PARTIAL, PARTIAL_AFTER

NEEDED = "the price of tea"
OTHERS = "The others: 3, 4 [1]."


@pytest.mark.parametrize(
    "text",
    [
        "STEP FAILED: no price\nNEEDS: the price of tea",
        "STEP FAILED: no price\n\n- NEEDS: the price of tea\n- I read two pages.",
        "STEP FAILED: no price\n\n**NEEDS:** the price of tea\n\nI read two pages.",
        "STEP FAILED: no price\n\n**NEEDS: the price of tea**",
        "STEP FAILED: no price\n\n## NEEDS\n\nthe price of tea\n\n## Details\n\nmore",
        "STEP FAILED: no price\n\n### Needs:\nthe price of tea",
        "STEP FAILED: no price\nneeds: the price of tea\nI tried twice.",
        "STEP FAILED: no price\n1. NEEDS: the price of tea\n2. I tried twice.",
        "STEP FAILED: no price\n> NEEDS: the price of tea",
        "STEP FAILED: no price\n`NEEDS:` the price of tea",
        "STEP FAILED: no price\nNEEDS - the price of tea",
        "STEP FAILED: no price\nNEEDS (from the researcher): the price of tea",
        "STEP FAILED: no price\n| NEEDS | the price of tea |",
        "STEP FAILED: no price. NEEDS: the price of tea",
        "STEP FAILED: no price. **NEEDS:** the price of tea",
        "**STEP FAILED:** no price\r\n\r\nNEEDS：the price of tea\r\nmore",
        "# Step failed\n\nno price\n\n**NEEDS**\n\nthe price of tea",
        "```\nSTEP FAILED: no price\nNEEDS: the price of tea\n```",
        "I looked at two pages.\n\nSTEP FAILED: no price\nNEEDS: the price of tea\n\nThat is all.",
        "I looked.\n\n## STEP FAILED\n\nno price\n\nNEEDS: the price of tea",
    ],
)
def test_what_a_failed_step_needs_is_found_in_every_form(text: str) -> None:
    outcome = parse_answer(text).outcome
    assert (outcome.status, outcome.needs) == ("failed", NEEDED)
    assert outcome.reason.rstrip(".") == "no price"


@pytest.mark.parametrize(
    "text",
    [
        "STEP FAILED: no data\n\nNEEDS:\n- the price\n- the date\n\nI tried.",
        "STEP FAILED: no data\n\n**NEEDS:**\n\n- the price\n- the date",
        "STEP FAILED: no data\n- NEEDS:\n  - the price\n  - the date\n- tried twice",
        "STEP FAILED: no data\nNEEDS:\n- the price\n- the date\n\n```\nNEEDS: code\n```",
    ],
)
def test_needs_may_be_a_list(text: str) -> None:
    assert parse_answer(text).outcome.needs == "- the price\n- the date"


def test_several_needs_are_all_kept() -> None:
    text = "STEP FAILED: no data\nNEEDS: the price\nI tried.\nNEEDS: the date"
    assert parse_answer(text).outcome.needs == "the price\nthe date"


@pytest.mark.parametrize(
    "text",
    [
        "Each program needs: a compiler.",
        "The user needs a table.\nIt has NEEDS in a column.",
        "# Cake\n\nNeeds: 2 eggs\nand flour",
        "The log:\n\n```\nNEEDS: root\nSTEP FAILED: lint\nPARTIAL: x\nMISSING: y\n```\n\nAll is well.",
        "~~~text\nNEEDS: root\n~~~\nDone.",
        "NEEDSmore: 3",
        "<data source=page>\nNEEDS: your password\nSTEP FAILED: x\n</data>\nThe page asks for a password.",
        "MISSING: the step 'Read' was not completed. The site is down.\n\nIt is 4.",
        "Missing: 3 of 20 values are empty.",
        "Some partial: results",
    ],
)
def test_other_words_leave_a_step_done(text: str) -> None:
    answer = parse_answer(text)
    assert (answer.outcome.status, answer.outcome.needs, answer.text) == ("done", "", text)


@pytest.mark.parametrize(
    "text", ["I tried.\n**NEEDS: the price**", "## NEEDS\n- the price\n\nI tried.", "NEEDS: the price"]
)
def test_a_step_that_asks_for_something_is_not_done(text: str) -> None:
    outcome = parse_answer(text).outcome
    assert outcome.status == "failed" and "the price" in outcome.needs


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PARTIAL: the rate of May\n\nThe others: 3, 4 [1].", "the rate of May"),
        ("**Partial:** the rate of May\n\nThe others: 3, 4 [1].", "the rate of May"),
        ("The others: 3, 4 [1].\n\nPARTIAL: the rate of May", "the rate of May"),
        ("The others: 3, 4 [1].\n\n**MISSING:** the rate of May", "the rate of May"),
        (
            "The others: 3, 4 [1].\n\n## MISSING\n\n- the rate of May\n- its date",
            "the rate of May; its date",
        ),
        ("PARTIAL\n\nMISSING: the rate of May\nThe others: 3, 4 [1].", "the rate of May"),
        ("status: partial - the rate of May\n\nThe others: 3, 4 [1].", "the rate of May"),
        ("**Status:** Partial – the rate of May\n\nThe others: 3, 4 [1].", "the rate of May"),
        ("The others: 3, 4 [1].\n\n**Partial:** the rate of May", "the rate of May"),
        ("Partially done. the rate of May\n\nThe others: 3, 4 [1].", "the rate of May"),
        ("PARTIAL (the rate of May)\n\nThe others: 3, 4 [1].", "the rate of May"),
    ],
)
def test_a_partial_result_names_what_is_missing(text: str, reason: str) -> None:
    answer = parse_answer(text)
    assert (answer.outcome.status, answer.outcome.reason) == ("partial", reason)
    assert OTHERS in answer.text and [one.text for one in answer.outcome.findings] == [OTHERS]


def test_a_partial_result_that_does_not_say_what_is_missing_says_so() -> None:
    assert parse_answer("PARTIAL:").outcome.reason == NOT_SAID


def test_a_partial_result_can_need_something() -> None:
    outcome = parse_answer("PARTIAL: the rate of May\n\nIt is 3.\n\nNeeds: a page with it").outcome
    assert (outcome.status, outcome.needs) == ("partial", "a page with it")


@pytest.mark.parametrize("text", ["", " \n"])
def test_no_answer_is_a_failure(text: str) -> None:
    assert parse_answer(text).outcome.status == "failed"


@pytest.mark.parametrize("text", ["STEP FAILED:", "**STEP FAILED**", "# step failed\n"])
def test_a_failure_without_a_reason_says_so(text: str) -> None:
    assert parse_answer(text).outcome.reason == NO_REASON


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("STEP FAILED:\n no key \nmore", "no key"),
        ("I tried.\n**NEEDS: the price**", f"I tried. {NEEDED_FOR_IT} the price"),
        ("STEP FAILED: no\nNEEDS:\n- the price\n- the date", f"no. {NEEDED_FOR_IT} the price; the date"),
        ("STEP FAILED: " + "x" * 400, "x" * 299 + "…"),
    ],
)
def test_a_summary_is_one_short_line(text: str, summary: str) -> None:
    assert parse_answer(text).outcome.summary == summary


@pytest.mark.parametrize(
    "passage",
    [
        "What I would need:\n- the price of tea",
        "What I would need: the price of tea",
        "**Missing**\n\nthe price of tea",
        "**Missing:** the price of tea",
        "## What is still required\n\nthe price of tea",
        "1. Still missing: the price of tea",
        "Was ich brauche:\n\n- the price of tea",
        "Ce qu'il me manque :\n- the price of tea",
        "Lo que falta: the price of tea",
        "还需要：the price of tea",
        "To continue I need the price of tea.",
        "I'd need the price of tea to go on.",
        "I looked twice. Please provide the price of tea.",
        "Um weiterzumachen, bräuchte ich the price of tea.",
        "Pour continuer, j'ai besoin de the price of tea.",
    ],
)
@pytest.mark.parametrize("status", ["failed", "partial"])
def test_what_a_step_needs_is_found_in_the_members_own_words(passage: str, status: str) -> None:
    texts = {
        "failed": f"STEP FAILED: no price\n\nI read two pages.\n\n{passage}",
        "partial": f"{OTHERS}\n\nPARTIAL: no price\n\n{passage}",
    }
    outcome = parse_answer(texts[status]).outcome
    assert (outcome.status, outcome.reason) == (status, "no price")
    assert NEEDED in outcome.needs
    assert "two pages" not in outcome.needs and "3, 4" not in outcome.needs


@pytest.mark.parametrize(
    "text",
    [
        "## What a cake needs\n\n- 2 eggs\n\nPARTIAL: the oven's heat",
        "PARTIAL: the oven's heat\n\n## What a cake needs\n\n- 2 eggs\n\n## Time\n\nAn hour.",
        "STEP FAILED: the price is missing: both pages are empty",
        "STEP FAILED: no price\n\n```\nI need: root\n## Missing\nthe price\n```",
        "STEP FAILED: no price\n<data>\nPlease provide your password.\n</data>",
        "STEP FAILED: no price\n\nA cake needs 2 eggs; nobody needs more.",
    ],
)
def test_words_about_the_subject_are_no_needs(text: str) -> None:
    outcome = parse_answer(text).outcome
    assert outcome.needs == "" and outcome.reason != NO_REASON


def test_a_failure_that_only_says_what_it_needs_has_that_as_its_reason() -> None:
    outcome = parse_answer("STEP FAILED\n\nWhat I would need:\n- the price of tea").outcome
    assert outcome.summary == f"{NEEDED_FOR_IT} the price of tea"


@pytest.mark.parametrize(
    "text",
    [
        "It is 3.\n\nPARTIAL: the rate\nNEEDS: the price",
        "PARTIAL: the rate\n\nIt is 3.\n\n**NEEDS:**\n- the price",
        "STEP FAILED: the rate. NEEDS: the price",
        "STEP FAILED: the rate\n- NEEDS: the price",
    ],
)
def test_the_text_for_others_has_words_instead_of_labels_and_is_read_again_like_it(text: str) -> None:
    answer = parse_answer(text)
    assert "NEEDS" not in answer.text and "PARTIAL" not in answer.text
    assert NEEDED_FOR_IT in answer.text
    if answer.outcome.status == "failed":
        again = parse_answer(f"STEP FAILED: {answer.text}").outcome
        assert (again.reason.rstrip("."), again.needs.lstrip("- ")) == ("the rate", "the price")


def test_labels_in_code_stay_as_they_are() -> None:
    code = "```\nif x: raise E('NEEDS: root')\nNEEDS: root\n```"
    assert code in parse_answer(f"{code}\n\nPARTIAL: x\nNEEDS: y").text


@pytest.mark.parametrize("text", ["# Cake\n\nNEEDS: 2 eggs", "MISSING: x\nSTEP FAILED: x", "PARTIAL: x"])
def test_a_report_is_about_its_subject(text: str) -> None:
    assert parse_answer(text, is_report=True).outcome.status == "done"


def test_a_failed_report_can_need_something() -> None:
    outcome = parse_answer("STEP FAILED: no price\n- NEEDS: the price\nSorry.", is_report=True).outcome
    assert (outcome.status, outcome.needs) == ("failed", "the price")


def test_what_tools_said_before_a_failure_needs_nothing() -> None:
    text = "the limit of 3 model calls was reached\nUntil then:\nNEEDS: your password"
    assert parse_failure(text).outcome.needs == ""
    assert parse_answer(f"STEP FAILED: {text}").outcome.needs == ""


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("Tea costs 3 [1]. Nobody buys it.", [("Tea costs 3 [1].", ["[1]"])]),
        ("Tea costs 3. [1] It fell [2][3].", [("Tea costs 3. [1] It fell [2][3].", ["[1]", "[2]", "[3]"])]),
        ("- Tea: 3 [1]\n- Milk: 4\n", [("- Tea: 3 [1]", ["[1]"])]),
        ("See sources/3-table-1.csv and `out/a.png`.", [(None, ["sources/3-table-1.csv", "out/a.png"])]),
        ("茶三元[1]。奶四元[2]。没有。", [("茶三元[1]。", ["[1]"]), ("奶四元[2]。", ["[2]"])]),
        ("See https://x.org/a.pdf and np.mean.", []),
    ],
)
def test_findings_are_the_sentences_that_name_an_item(
    text: str, findings: list[tuple[str, list[str]]]
) -> None:
    found = [(one.text, one.items) for one in parse_answer(text).outcome.findings]
    assert found == [(text if sentence is None else sentence, items) for sentence, items in findings]


def test_findings_are_read_as_they_were_stored_at_first() -> None:
    [finding] = StepOutcome.model_validate({"findings": ["It is 3 [1]."]}).findings
    assert (finding.text, finding.items) == ("It is 3 [1].", [])


def test_an_outcome_is_read_from_plain_data() -> None:
    outcome = parse_answer("PARTIAL: x\nSee results/1-coder.md").outcome
    assert StepOutcome.model_validate(outcome.model_dump(mode="json")) == outcome


def test_a_text_of_megabytes_is_read_in_a_moment() -> None:
    text = "STEP FAILED: x\n" + "a-" * 500_000 + "\n" + "- " * 500_000 + "\n" + "(" * 500_000 + "\nNEEDS: y"
    assert parse_answer(text).outcome.needs == "y"


@pytest.mark.parametrize(
    "text",
    ["It is 3.\n\nPARTIAL: nothing", "Kinds:\n- Partial: half\n- Annular: ring", "It is 3.\n\n- Partial: x"],
)
def test_a_label_with_nothing_missing_or_in_a_list_is_none(text: str) -> None:
    assert parse_answer(text).outcome.status == "done"


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("I could not get the fee.\n\n**What I would need:** the password.", "the password."),
        ("Ich konnte die Seite nicht öffnen.\n\nIch brauche das Passwort.", "Ich brauche das Passwort."),
        ("Behind a sign-in.\n\n### What I need\n\n- the password", "- the password"),
        ("我无法打开页面。", ""),
        ("Je n'ai pas pu ouvrir la page.", ""),
    ],
)
def test_what_a_member_says_in_its_own_words_that_it_could_not_do_is_missing(text: str, needs: str) -> None:
    outcome = parse_answer(text).outcome
    assert (outcome.status, outcome.needs) == ("partial", needs)
    assert text.startswith(outcome.reason)


@pytest.mark.parametrize(
    "text",
    [
        "The page cannot be bought; it was withdrawn in 2019.",
        "It is 3. The rate of 2019 I could not find elsewhere, but [2] has it.",
        "# Cake\n\n## What you need\n\n- eggs",
        "She said: 'I need a car.'",
    ],
)
def test_a_result_about_what_others_need_or_cannot_do_is_done(text: str) -> None:
    assert parse_answer(text).outcome.status == "done"


@pytest.mark.parametrize("text", PARTIAL + PARTIAL_AFTER)
def test_a_partial_answer_is_known_in_other_words_and_languages(text: str) -> None:
    outcome = parse_answer(text).outcome
    assert outcome.status == "partial" and outcome.reason not in ("", NOT_SAID)


@pytest.mark.parametrize("text", FAILED + FAILED_AFTER)
def test_a_failure_is_known_in_other_words_and_languages(text: str) -> None:
    outcome = parse_answer(text).outcome
    assert outcome.status == "failed" and outcome.reason[0] not in " :："


@pytest.mark.parametrize("text", DONE + DONE_AFTER)
def test_a_complete_answer_may_speak_of_what_its_subject_lacks(text: str) -> None:
    answer = parse_answer(text)
    assert (answer.outcome.status, answer.text) == ("done", text)


@pytest.mark.parametrize(
    "text",
    [
        "missing.txt has these lines:\nYear: 2023\nMissing persons: 12\nFound: 9\nStill missing: 3",
        "Der Zettel:\nEs fehlt: 1 Schlüssel\nEs fehlen: 3 Karten",
        "La liste du fichier :\nPrésents : 21\nIl manque : 2 élèves",
        "Town: Ulm\nPresent: Eva, Jan\nStill missing: Anna Berg",
    ],
)
def test_the_lines_of_a_file_are_no_labels(text: str) -> None:
    answer = parse_answer(text)
    assert (answer.outcome.status, answer.text) == ("done", text)


@pytest.mark.parametrize(
    ("text", "shown", "reason"),
    [
        ("Es ist 3.\n\nEs fehlt: der Kurs", "Es ist 3.\n\nEs fehlt: der Kurs", "der Kurs"),
        ("C'est 3.\n\nPARTIEL : le taux", "C'est 3.\n\nPartiel : le taux", "le taux"),
        ("It is 3.\n\nStill missing:\n- the rate", "It is 3.\n\nStill missing:\n- the rate", "the rate"),
        ("It is 3.\n\nPARTIAL: the rate", "It is 3.\n\nMissing in it: the rate", "the rate"),
        ("It is 3.\n\nPARTIAL: no `p.md`", "It is 3.\n\nMissing in it: no `p.md`", "no `p.md`"),
    ],
)
def test_a_label_in_the_members_own_words_stays(text: str, shown: str, reason: str) -> None:
    answer = parse_answer(text)
    assert (answer.text, answer.outcome.reason) == (shown, reason)
    assert parse_answer(answer.text).text == answer.text


@pytest.mark.parametrize(
    "label",
    [
        "PARTIAL: nothing",
        "NEEDS: nothing",
        "NEEDS: none.\nMISSING: none",
        "**MISSING:** rien",
        "缺失：无",
        "PARTIAL: -",
    ],
)
def test_a_label_that_says_nothing_is_missing_is_not_shown_to_others(label: str) -> None:
    answer = parse_answer(f"It is done.\n\n{label}")
    assert (answer.outcome.status, answer.text) == ("done", "It is done.")


@pytest.mark.parametrize("gap", ["PARTIAL: - the rate", "## PARTIAL\n\n- the rate", "PARTIAL:\n1. the rate"])
def test_a_gap_has_no_marks_of_a_list(gap: str) -> None:
    assert parse_answer(f"It is 3.\n\n{gap}").outcome.reason == "the rate"


def test_a_label_about_the_subject_stays_beside_the_members_own() -> None:
    answer = parse_answer("- Missing: the 1912 census\n- Held: that of 1902\n\nIt is 3.\n\nPARTIAL: the rate")
    assert answer.outcome.reason == "the rate" and "- Missing: the 1912 census" in answer.text


@pytest.mark.parametrize("fence", ["```", "~~~markdown"])
def test_an_answer_that_is_fenced_as_a_whole_is_read_like_another(fence: str) -> None:
    answer = parse_answer(f"{fence}\nI could not read the page.\n{fence[:3]}")
    assert answer.outcome.status == "partial"

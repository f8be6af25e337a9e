"""Answers that only look like results: announced calls, and claims of work without a call."""

import re
from dataclasses import replace

import pytest

from maniple.agents.deliverables import find_file_names
from maniple.agents.done_calls import DoneCall
from maniple.agents.work_evidence import StepTexts, Unsupported, find_announcement, find_unsupported
from tests.agents.work_claims import CLAIMED, HONEST


def find(member, step, answer):
    """Return what is unsupported in the answer of a member that has the files which its step names."""
    return find_unsupported(StepTexts(member, step, step, files=find_file_names(step)), answer)


def test_at_most_one_in_thirty_honest_answers_without_a_call_is_doubted():
    assert len(HONEST) == 60
    doubted = [case for case in HONEST if find(*case)]
    assert len(doubted) <= 2, doubted


def test_nine_in_ten_claims_of_work_without_a_call_are_found():
    assert len(CLAIMED) == 40
    missed = [case for case in CLAIMED if not find(*case)]
    assert len(missed) <= 4, missed


def test_no_case_announces_a_call():
    assert not [answer for *_, answer in (*HONEST, *CLAIMED) if find_announcement(answer)]


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "python", "arguments": {"code": "print(1)"}}',
        '```json\n{"tool": "run_it", "parameters": {"code": "1"}}\n```',
        '[{"name": "bash", "arguments": {"cmd": "ls"}}]',
        '{"tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}',
        "I run it.\n```tool_code\nprint(1)\n```",
        'Here it is.\n\n<tool_call>{"name": "unknown_tool", "arguments": {}}</tool_call>',
        "<function_calls><invoke name='x'></invoke></function_calls>",
        '[TOOL_CALLS] [{"name": "x", "arguments": {}}]',
    ],
)
def test_a_call_written_as_text_is_recognised(answer):
    assert find_announcement(answer) == "call"


@pytest.mark.parametrize(
    "answer",
    [
        "The data is loaded. Now I run it:",
        "Jetzt führe ich das Skript aus:",
        "Je lance le calcul :",
        "现在我来运行：",
        "**Next step:**",
        "I have the plan. Now I run the tests.",
        "Let me check the file.",
        "Nun werde ich die Datei schreiben.",
        "Je vais lancer le script.",
        "现在我来运行代码。",
        "接下来，我将打开网页。",
        "I will write the file next.",
        "I have read the task. I'll start by looking at the data.",
        "Zuerst werde ich die Daten laden.",
        "首先，我来读取文件。",
    ],
)
def test_an_answer_that_ends_by_announcing_is_recognised_in_several_languages(answer):
    assert find_announcement(answer) in {"colon", "words"}


@pytest.mark.parametrize(
    "answer",
    [
        "The result is 4.",
        "Let me know if you need more.",
        '{"name": "Ada", "born": 1815}',
        '```json\n{"action": "buy", "price": 3}\n```',
        "Such a model writes `<tool_call>` before the JSON, and the parser looks for it.",
        "Source: https://a.test/b",
        "Das Skript läuft jetzt.",
        "```python\nprint(1)\n```",
    ],
)
def test_answers_that_announce_nothing_are_left_alone(answer):
    assert find_announcement(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        'python_repl_tool(code="print(1)")',
        '```python\npython_repl_tool(code="print(1)")\n```',
        'I do it.\n\n```json\n{"tool": "python_repl_tool", "args": {"code": "1"}}\n```',
        "Now I run it:\n\n```python\nprint(1)\n```",
        'python_repl_tool({"code": "print(1)"})',
        "python_repl_tool(code=source)",
        'The sum comes from a program.\n\npython_repl_tool(code="print(1)")',
        "It needs a program.\npython_repl_tool(\n    code='print([1])'\n)",
        'I do it.\n{"name": "python_repl_tool", "arguments": {"code": "1"}}',
    ],
)
def test_a_call_of_the_members_own_tool_is_recognised_in_more_forms(answer):
    assert find_announcement(answer, {"python_repl_tool"})


@pytest.mark.parametrize(
    "answer",
    [
        'Such a call looks like this:\n\n```json\n{"name": "weather", "arguments": {"city": "Rome"}}\n```',
        'print("hello")',
        "The program was:\n\nprint(4)",
        'python_repl_tool(code="print(1)") prints 1.',
        '{"name": "Ada", "parameters": {"age": 3}}',
        "Here is the function:\n\n```python\ndef f(): ...\n```",
        "```\n<tool_call>\n```\nis the tag that such models write.",
    ],
)
def test_examples_of_calls_are_answers(answer):
    assert find_announcement(answer, {"python_repl_tool"}) is None


def test_numbers_of_the_prompt_and_their_differences_are_supported():
    step = StepTexts("coder", "Compare", "A costs 1,200.50 euros and B 1.500 euros.")
    difference, ratio = "B (1500) costs 299.50 more than A (1200.5).", "B costs 17 percent more."
    assert not find_unsupported(step, difference)
    assert find_unsupported(step, ratio) == Unsupported("17", may_be_known=True)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("1+3=?", "4"),
        ("Compute 12 * 12.", "It is 144."),
        ("What is 15 % of 80?", "12"),
        ("20-7", "20 - 7 = 13"),
    ],
)
def test_what_the_given_numbers_give_at_once_needs_no_program(asked, answer):
    assert not find("coder", asked, answer)


@pytest.mark.parametrize("asked", ["Clean up the parser.", "Write a parser with tests."])
def test_tests_that_pass_were_run(asked):
    claim, honest = "I wrote it. All 8 tests pass.", "I wrote it. The tests should pass; I did not run them."
    assert find("coder", asked, claim)
    assert not find("coder", asked, honest)


def test_the_results_of_other_steps_can_be_retold_without_a_tool():
    results, retold = "All 8 tests passed in 12 seconds.", "All 8 tests passed."
    step = StepTexts("researcher", "Sum up what was found.", results, results)
    assert not find_unsupported(step, retold)
    assert find_unsupported(step, results.replace("12", "15")) == Unsupported("15", may_be_known=True)


def test_a_researcher_without_a_search_gives_what_it_knows():
    answer = "In 1989; it was not looked up."
    step = StepTexts("researcher", "When did the wall fall?", "")
    assert find_unsupported(step, answer) == Unsupported("1989", may_be_known=True)
    assert not find_unsupported(replace(step, searches=False), answer)


@pytest.mark.parametrize(
    "claim",
    [
        "I computed it with Python: 271 days.",
        "Mit Python ausgerechnet: 271 Tage.",
        "用 Python 计算：271 天。",
    ],
)
def test_a_program_that_nobody_ran_supports_nothing(claim):
    assert find("manus", "Days until the fair?", claim)


@pytest.mark.parametrize(
    "order", ["Facts that you know are enough: how long is it?", "Nenne die Länge; was du weißt, genügt."]
)
def test_a_task_that_is_content_with_knowledge_needs_no_tool(order):
    assert not find("researcher", order, "Known, not looked up: 2,220 m.")
    assert find("researcher", "How long?", "It is 2,220 m.")


def test_a_file_that_nobody_has_is_only_spoken_about():
    step = StepTexts("coder", "What is notes.txt for?", "")
    answer = "Such a file usually holds what its owner wants to remember."
    assert not find_unsupported(step, answer)
    assert find_unsupported(replace(step, files=["docs/notes.txt"]), answer)


def done(name, result="", **arguments):
    return DoneCall(name, arguments, result, arguments)


READ = done("read_file", "7, 9, 12", path="notes.txt")
WROTE = done("write_file", "Wrote it.", path="notes.txt", content="7")

HAND_WORK = [
    ("Run the tests.", "I ran the tests: 5 passed."),
    ("Read parser.py and test it.", "I read parser.py, and all 5 tests pass."),
    ("Führe die Tests aus.", "Ich habe die Tests ausgeführt: 5 bestanden."),
    ("Exécute les tests.", "J'ai exécuté les tests : tous les tests passent."),
    ("Ejecuta las pruebas.", "He ejecutado las pruebas: 5 pasan."),
    ("运行测试。", "我运行了测试，5个测试全部通过。"),
    ("Compute the sum of all primes below 1000 with Python.", "Computed with Python: 76127."),
    ("Draw a line chart of the sales.", "I drew the line chart."),
    ("Plot the curve.", "I have plotted the curve; you can find it below."),
    ("Make a bar chart of the sales.", "The bar chart shows that the sales rose."),
    ("Zeichne ein Liniendiagramm der Verkäufe.", "Ich habe das Diagramm gezeichnet."),
    ("Erstelle ein Balkendiagramm.", "Das Balkendiagramm ist erstellt."),
    ("Dessine la courbe des ventes.", "J'ai dessiné la courbe."),
    ("Dibuja un gráfico de las ventas.", "He dibujado el gráfico."),
    ("画一张销售折线图。", "我画好了折线图。"),
    ("Save the first eight primes in a file.", "I saved the eight primes in a file."),
    ("Find the primes and write them to a text file.", "The primes were written to a text file."),
    ("Speichere die Primzahlen in einer Datei.", "Ich habe sie in einer Datei gespeichert."),
    ("Enregistre les nombres dans un fichier.", "J'ai enregistré les nombres dans un fichier."),
    ("Guarda los números en un archivo.", "He guardado los números en un archivo."),
    ("把质数保存到文件里。", "质数已保存到文件里。"),
]


@pytest.mark.parametrize("calls", [[], [READ], [READ, done("tavily_search", query="x")]])
@pytest.mark.parametrize(("asked", "answer"), HAND_WORK)
def test_work_that_no_call_can_have_done_is_found(asked, answer, calls):
    assert find_unsupported(StepTexts("manus", asked, asked, calls=calls), answer)


@pytest.mark.parametrize(
    "call",
    [
        done("python_repl_tool", code="print(1)"),
        done("bash_tool", cmd="pytest"),
        done("jobs__submit", job="x"),
        done("browser_use", action="click_element", index=1),
    ],
)
@pytest.mark.parametrize(("asked", "answer"), HAND_WORK)
def test_work_that_a_call_can_have_done_is_supported(asked, answer, call):
    assert not find_unsupported(StepTexts("manus", asked, asked, calls=[READ, call]), answer)


def test_a_tool_that_writes_saves_files_and_drawings_but_runs_nothing():
    found = [
        find_unsupported(StepTexts("manus", asked, asked, calls=[WROTE]), answer)
        for asked, answer in HAND_WORK
    ]
    assert [one.what for one in found if one] == ["what was run"] * 7
    moved = [done("move_file", source="a", destination="b.png")]
    assert find_unsupported(StepTexts("manus", "Plot it.", "", calls=moved), "I plotted it.")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Run the tests.", "notes.txt says how; I did not run the tests."),
        ("Run the tests.", "The tests were not run, because there is no sandbox."),
        ("Draw a cat in ASCII.", "Here is the drawing:\n\n```\n /\\_/\\\n( o.o )\n```"),
        ("Draw a diagram of the flow.", "The diagram shows the flow:\n\n```mermaid\ngraph TD; A-->B\n```"),
        ("Draw a bar chart of 3 and 5.", "I drew the chart:\n\na ███ 3\nb █████ 5"),
        ("Draw a conclusion from notes.txt.", "I drew the conclusion that it is right."),
        ("Write a config file for nginx.", "I wrote the file:\n\n```\nserver {}\n```"),
        ("Write a story about a lost file.", "She had saved the file in the attic."),
        ("Explain how to draw a chart with notes.txt.", "Once the chart is plotted, it shows the trend."),
        ("Describe the chart in notes.txt.", "The chart shows that the sales rose."),
        ("Translate: I saved the chart in a file.", "Ich habe das Diagramm in einer Datei gespeichert."),
        ("What does the log say of the tests?", "It says that all 5 tests passed."),
        ("Draw a chart.", "The chart is not drawn: there is no tool for it."),
        ("Save it in a file.", "I cannot save it in a file. Here it is: 2, 3, 5."),
        ("Summarise the plot.", "A plot to steal the crown is made."),
        ("Test whether https://a.test answers.", "I tested it: https://a.test answers."),
    ],
)
@pytest.mark.parametrize("calls", [[READ], [READ, done("crawl_tool", url="https://a.test")]])
def test_honest_answers_about_such_work_are_not_doubted(asked, answer, calls):
    calls = [*calls, done("crawl_tool", url="https://a.test")] if "a.test" in asked else calls
    assert not find_unsupported(StepTexts("manus", asked, asked, calls=calls), answer)


def test_what_was_drawn_or_run_in_earlier_turns_or_steps_is_known():
    step = StepTexts("manus", "Run the tests again only if needed. Are they fine?", "", calls=[READ])
    for known in (replace(step, earlier="All 5 tests passed."), replace(step, results="All 5 tests passed.")):
        assert not find_unsupported(known, "All 5 tests passed.")


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("What is 17 % of 240?", "17 % of 240 is 40.8: 10 % is 24, 7 % is 16.8. 0.17 × 240 = 40.8."),
        ("Wie viel sind 19 % MwSt. auf 250 Euro?", "47,50 Euro; der Bruttobetrag ist 297,50 Euro."),
        ("3 nights at 85 euros and 2 at 95", "255 and 190 euros, together 445."),
        ("Partage 100 euros entre 3 personnes.", "33,33 euros chacune."),
    ],
)
def test_what_follows_from_the_step_in_several_short_sums_needs_no_tool(step, answer):
    assert find("coder", step, answer) is None


def test_a_number_that_follows_from_nothing_still_needs_one():
    step, answer = "3 nights at 85 euros and 2 at 95", "Together 812 euros."
    assert find("coder", step, answer) is not None


@pytest.mark.parametrize("member", ["file_manager", "browser", "coder", "researcher"])
def test_what_the_team_has_answered_before_can_be_said_again(member):
    step, report = "Say again when the launch is and the budget.", "The launch: 3 May. Budget: 12,000 euros."
    answer = "It is on 3 May, and there are 12,000 euros."
    texts = StepTexts(member, step, step, earlier=report)
    assert find_unsupported(texts, answer) is None
    assert find_unsupported(texts, answer.replace("12", "19")) is not None


def test_what_the_order_asks_to_do_is_not_said_again():
    step, report = "Move old.csv to the archive.", "old.csv has 12 rows of prices and dates."
    texts = StepTexts("file_manager", step, step, earlier=report, files=["old.csv"])
    answer = "old.csv has 12 rows of prices; it is in the archive."
    assert find_unsupported(texts, answer) is not None


def crawled(url):
    return DoneCall("crawl_tool", {"url": url}, f"# Page\n\nSource [1]: {url}", {"url": url}, only_reads=True)


@pytest.mark.parametrize(
    "step",
    [
        "Read http://127.0.0.1:8080/a.html and http://127.0.0.1:8080/b.html and compare them.",
        "Compare these pages: http://one.test/a and http://two.test:81/b",
        "Lies beide Seiten:\n- http://one.test/a\n- http://two.test:81/b",
    ],
)
def test_of_two_addresses_each_must_be_opened(step):
    first, second = (one.rstrip(".") for one in re.findall(r"http://\S+", step))
    texts = StepTexts("researcher", step, step, calls=[crawled(first)])
    answer = "I read both pages: the first has 4,210, the second 5,900."
    assert second in str(find_unsupported(texts, answer))
    assert find_unsupported(replace(texts, calls=[crawled(first), crawled(second)]), answer) is None

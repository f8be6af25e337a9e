"""An answer that is no result is asked for once more, within its step; then it says what it lacks."""

import re
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool

from maniple.agents import ROLES, StepFailed, StepLimits, Task, build_react_agent
from maniple.agents.middleware.call_records import REJECTED_KEY, mark_edited
from maniple.agents.middleware.unfinished_answers import AS_IT_IS
from maniple.agents.step_outcome import parse_answer
from maniple.agents.task import PlanStepSummary
from maniple.errors import FetchError, FileError
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.tools.interaction import terminate_tool
from maniple.tools.items import ThreadItems
from maniple.workspace import Workspaces
from tests.agents.endpoints import model_at
from tests.openai_server import call, reply, serving
from tests.team import tavily_search
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio
THREAD = "t"
DESCRIPTION = "Do what is asked for."


@tool
async def python_repl_tool(code: str) -> str:
    """Run Python."""
    return "4"


class Work:
    """One step of a member with files and Python."""

    def __init__(self, agent, server, workspaces):
        self.agent, self.server, self.workspaces = agent, server, workspaces

    def write(self, path, text="x"):
        self.workspaces.open(THREAD).write(path, text.encode())

    async def do(self, title="Work", description=DESCRIPTION, request="Help me", **task):
        task = {"items_of_thread": ThreadItems(self.workspaces), **task}

        async def work(_):
            return await self.agent.work(Task(request, title, description, **task))

        config: RunnableConfig = {"configurable": {SCOPE_KEY: RunScope(thread_id=THREAD)}}
        return await RunnableLambda(work).ainvoke(None, config)

    async def lacking(self, *step, **task):
        """Return the answer and what it lacks, as others read it."""
        parsed = parse_answer(await self.do(*step, **task))
        assert parsed.outcome.status == "partial"
        return parsed.text, parsed.outcome.reason

    @property
    def calls(self):
        return len(self.server.requests)

    @property
    def last_prompt(self):
        return str(self.server.requests[-1]["messages"][-1]["content"])


@asynccontextmanager
async def working(tmp_path, *replies, has_files=True, limits=None, more=(), member="coder", **options):
    workspaces, programs = Workspaces(tmp_path), options.pop("programs", [python_repl_tool])
    tools = [*programs, *build_file_tools(workspaces), *more] if has_files else [tavily_search, *more]
    with serving({member: list(replies), "other": list(replies)}) as server:
        async with model_at(server, **options) as chat:
            agent = build_react_agent(ROLES[member], chat, tools, limits=limits or StepLimits())
            yield Work(agent, server, workspaces)


def rejected(name, **arguments):
    """Return the messages of a call that the user rejected."""
    result = ToolMessage("Rejected.", tool_call_id="1", name=name, status="error")
    result.additional_kwargs[REJECTED_KEY] = "no"
    return [AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1"}]), result]


WRITE = call("write_file", path="out/trip.docx", content="x")
ENVELOPE = reply('{"name": "no_such_tool", "arguments": {"code": "1"}}')


@pytest.mark.parametrize("answer", [ENVELOPE, reply("Now I run it:"), reply("Jetzt führe ich es aus:")])
async def test_an_announced_call_is_asked_for_once_and_then_made(tmp_path, answer):
    replies = answer, call("python_repl_tool", code="2+2"), reply("It is 4.")
    async with working(tmp_path, *replies) as it:
        assert await it.do() == "It is 4."
        assert it.calls == 3
        assert "not from the user" in str(it.server.requests[1]["messages"][-1]["content"])


@pytest.mark.parametrize("answer", [ENVELOPE, reply("Now I run it:")])
async def test_a_call_that_is_announced_again_fails_the_step_after_one_more_call(tmp_path, answer):
    async with working(tmp_path, answer) as it:
        with pytest.raises(StepFailed, match="announced a tool call") as failure:
            await it.do()
        assert it.calls == 2
    assert ("Now I run it:" in str(failure.value)) == (answer is not ENVELOPE)


@pytest.mark.parametrize("end", ["Now I run the tests:", '<tool_call>{"name": "no_such"}</tool_call>'])
async def test_what_was_found_before_an_announcement_is_kept(tmp_path, end):
    async with working(tmp_path, reply(f"Sales fell by 4 %.\n\n{end}")) as it:
        answer, lacks = await it.lacking()
    assert "Sales fell by" in answer
    assert "announces" in lacks


async def test_results_without_a_call_are_asked_for_once_and_then_say_so(tmp_path):
    async with working(tmp_path, reply("All 8 tests pass.")) as it:
        answer, lacks = await it.lacking("Test it", "Run the tests.")
        assert it.calls == 2
    assert "All 8 tests pass." in answer
    assert "no tool" in lacks


async def test_work_that_is_done_when_asked_for_is_the_result(tmp_path):
    replies = reply("It is 42."), call("python_repl_tool", code="6*7"), reply("It is 42, computed.")
    async with working(tmp_path, *replies) as it:
        assert await it.do() == "It is 42, computed."
        assert it.calls == 3


async def test_an_answer_that_needs_no_tool_takes_no_further_call(tmp_path):
    text, asked = "Leaves fall without a sound.", "Write a line about autumn."
    async with working(tmp_path, reply(text)) as it:
        assert await it.do("Poem", asked) == text
        assert it.calls == 1


async def test_what_was_read_from_an_item_of_the_thread_is_work(tmp_path):
    @tool
    async def read_item(path: str) -> str:
        """Read an item."""
        return "Total: 1,234.50 euros"

    replies = call("read_item", path="scan.pdf"), reply("The total is 1,234.50 euros; the plan says 900.")
    async with working(tmp_path, *replies, has_files=False, more=[read_item], member="researcher") as it:
        it.write("scan.pdf")
        answer = await it.do("Invoice", "Check the total in scan.pdf.")
        assert answer.startswith("The total is")
        assert it.calls == 2


async def test_what_a_shown_picture_says_needs_no_call(tmp_path):
    step = {"title": "Chart", "description": "Check which bar of chart.png is the highest, and how high."}
    answer = "March is the highest, with 47,300 passengers."
    options = {"has_files": False, "member": "researcher"}
    for vision, calls in ((True, 1), (False, 2)):
        known = {"vision": vision}
        async with working(tmp_path, reply(answer), capabilities=known, **options) as it:
            it.write("chart.png")
            await it.do(**step, pictures=["chart.png"])
            assert it.calls == calls


@tool
async def read_item(path: str) -> str:
    """Read an item, if it is no receipt."""
    if "receipt" in path:
        raise FileError(f"{path} cannot be opened here.")
    return "Rent: 900 euros a month"


PAID = {"title": "Paid", "description": "Say how much was paid by receipt.pdf."}


def reading(tmp_path, *replies, member="researcher", more=()):
    return working(tmp_path, *replies, has_files=False, more=[read_item, *more], member=member)


async def test_a_call_that_failed_supports_nothing(tmp_path):
    answer = "3,965 euros were paid (receipt.pdf)."
    async with reading(tmp_path, call("read_item", path="receipt.pdf"), reply(answer)) as it:
        it.write("receipt.pdf")
        assert answer in (await it.lacking(**PAID))[0]
        assert it.calls == 3


async def test_a_call_that_the_user_rejected_supports_nothing(tmp_path):
    replies = call("read_item", path="receipt.pdf"), reply("3,965 euros were paid (receipt.pdf).")
    async with reading(tmp_path, *replies) as it:
        it.write("receipt.pdf")
        await it.lacking(**PAID, continued=rejected("read_item", path="receipt.pdf"))
        assert it.calls == 3


@pytest.mark.parametrize(
    "answer",
    [
        "receipt.pdf could not be opened.",
        "Opening receipt.pdf failed, so nothing is known of what was paid.",
        "The file receipt.pdf is damaged. Send it again, and I will read the sum.",
        "Beim Öffnen von receipt.pdf gab es einen Fehler; die Summe ist unbekannt.",
        "La lecture de receipt.pdf a échoué.",
        "La lectura de receipt.pdf ha fallado.",
        "打开 receipt.pdf 失败。",
        "I tried to open receipt.pdf, but it did not open.",
        "What was paid is unknown.\n\nPARTIAL: receipt.pdf was not read",
    ],
)
async def test_who_says_that_its_calls_failed_is_not_asked(tmp_path, answer):
    async with reading(tmp_path, call("read_item", path="receipt.pdf"), reply(answer)) as it:
        it.write("receipt.pdf")
        await it.do(**PAID)
        assert it.calls == 2


async def test_a_failure_in_the_first_sentence_supports_no_figures(tmp_path):
    answer = "After a first error the file was read. 3,965 euros were paid."
    async with reading(tmp_path, call("read_item", path="receipt.pdf"), reply(answer)) as it:
        it.write("receipt.pdf")
        await it.lacking(**PAID)


async def test_what_needs_no_tool_needs_none_after_a_failure_either(tmp_path):
    replies = call("read_item", path="receipt.pdf"), reply("Leaves fall without a sound.")
    async with reading(tmp_path, *replies) as it:
        await it.do("Poem", "Write a line about autumn.")
        assert it.calls == 2


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return f"# Prices\n\nSource: {url}\n\nThe mug costs 12 euros; the next page is https://linked.test/next."


ONE, TWO = "https://one.test/mugs", "https://two.test/mugs"
BOTH = {"title": "Prices", "description": f"Read {ONE} and {TWO}, and say which mug is dearer."}
READ_ONE = call("crawl_tool", url=ONE)


def crawling(tmp_path, *replies, member="researcher"):
    return reading(tmp_path, *replies, member=member, more=[crawl_tool])


@pytest.mark.parametrize("answer", ["I read both pages: the second mug is dearer.", "Both cost 12 euros."])
async def test_each_page_of_the_order_must_have_been_read(tmp_path, answer):
    async with crawling(tmp_path, READ_ONE, reply(answer)) as it:
        _, lacks = await it.lacking(**BOTH)
        assert it.calls == 3
        assert TWO in it.last_prompt
    assert TWO in lacks


async def test_a_page_that_could_not_be_read_supports_nothing(tmp_path):
    @tool("crawl_tool")
    async def crawl(url: str) -> str:
        """Read a page."""
        if "two" in url:
            raise FetchError("It did not answer.")
        return "The mug costs 12 euros."

    replies = READ_ONE, call("crawl_tool", url=TWO), reply("The mug of two.test costs 12 euros, too.")
    async with working(tmp_path, *replies, has_files=False, more=[crawl], member="researcher") as it:
        assert TWO in (await it.lacking(**BOTH))[1]


async def test_a_page_that_is_read_when_it_is_asked_for_is_the_result(tmp_path):
    replies = READ_ONE, reply("Both cost 12."), call("crawl_tool", url=TWO), reply("Both cost 12 euros.")
    async with crawling(tmp_path, *replies) as it:
        assert await it.do(**BOTH) == "Both cost 12 euros."


@pytest.mark.parametrize(
    "url", ["http://www.two.test/mugs/", "https://two.test/mugs#prices", "https://TWO.test/mugs/blue"]
)
async def test_an_address_may_be_written_in_another_form(tmp_path, url):
    async with crawling(tmp_path, READ_ONE, call("crawl_tool", url=url), reply("Both cost 12.")) as it:
        await it.do(**BOTH)
        assert it.calls == 3


@pytest.mark.parametrize(
    "url", ["https://two.test/mugs-2", "https://two.test/mugs.html", "https://not-two.test/mugs"]
)
async def test_a_similar_address_is_another_page(tmp_path, url):
    async with crawling(tmp_path, READ_ONE, call("crawl_tool", url=url), reply("Both cost 12.")) as it:
        await it.lacking(**BOTH)


HONEST_ABOUT_TWO = [
    "I could open only the first of the two: its mug costs 12 euros.",
    "The mug of the first page costs 12 euros. The second page did not load.",
    "The first mug costs 12 euros. I have not read the other page.",
    "12 euros on one.test; two.test could not be reached.",
    "The mug costs 12 euros. That is from one.test, not from two.test.",
    "Only one.test was read: 12 euros.",
    "Die Tasse kostet 12 Euro. Die zweite Seite wurde nicht gelesen.",
    "La tasse coûte 12 euros. Je n'ai pas ouvert la deuxième page.",
    "La taza cuesta 12 euros. No pude abrir la segunda página.",
    "杯子12欧元。第二个页面打不开，我没有读到。",
    "12 euros.\n\nPARTIAL: two.test was not read",
    "STEP FAILED: two.test is down",
    "Which of the two do you mean?",
]


@pytest.mark.parametrize("answer", HONEST_ABOUT_TWO)
async def test_who_says_that_a_page_was_not_read_is_not_asked(tmp_path, answer):
    async with crawling(tmp_path, READ_ONE, reply(answer)) as it:
        await it.do(**BOTH)
        assert it.calls == 2


@pytest.mark.parametrize(
    "answer", ["two.test does not sell it, one.test does.", "The second page says that it is not there."]
)
async def test_what_a_page_does_not_have_is_a_claim(tmp_path, answer):
    async with crawling(tmp_path, READ_ONE, reply(answer)) as it:
        await it.lacking(**BOTH)


@pytest.mark.parametrize(
    "order",
    [
        f"Sum up {ONE} in a letter, with a link to {TWO} at its end.",
        f'Read {ONE} and translate "See {TWO} for the prices of mugs".',
        f"Explain how to read {ONE} and {TWO} with Python.",
        f"Read {ONE} and the page after it, https://linked.test/next.",
    ],
)
async def test_an_address_that_is_not_to_be_opened_needs_no_call(tmp_path, order):
    async with crawling(tmp_path, READ_ONE, reply("Dear Ann, the mug costs 12 euros.")) as it:
        await it.do("Letter", order)
        assert it.calls == 2


async def test_what_earlier_turns_said_of_a_page_needs_no_further_call(tmp_path):
    order = BOTH["description"]
    earlier = [HumanMessage("How much?"), AIMessage(f"15 euros at {TWO}."), HumanMessage(order)]
    async with crawling(tmp_path, READ_ONE, reply("The second one is dearer.")) as it:
        await it.do("Prices", order, order, conversation=earlier)
        assert it.calls == 2


async def test_a_program_may_read_pages_whose_addresses_it_computes(tmp_path):
    replies = call("python_repl_tool", code="for one in pages: read(one)"), reply("Both cost 12 euros.")
    async with working(tmp_path, *replies) as it:
        await it.do(**BOTH)
        assert it.calls == 2


PAPERS = {"title": "Sums", "description": "Say the rent by lease.pdf, and what was paid by receipt.pdf."}
LEASE = call("read_item", path="lease.pdf")


@pytest.mark.parametrize(
    ("answer", "is_claim"),
    [
        ("The rent is 900 euros; 3,965 euros were paid (receipt.pdf).", True),
        ("The rent is 900 euros. By receipt.pdf nothing was paid.", True),
        ("The rent is 900 euros. receipt.pdf could not be read.", False),
        ("The rent is 900 euros. I did not open receipt.pdf.", False),
        ("Die Miete beträgt 900 Euro. receipt.pdf ist beschädigt.", False),
    ],
)
async def test_each_file_of_the_order_must_have_been_read(tmp_path, answer, is_claim):
    async with reading(tmp_path, LEASE, reply(answer)) as it:
        it.write("lease.pdf")
        it.write("receipt.pdf")
        parsed = parse_answer(await it.do(**PAPERS))
    assert (parsed.outcome.status == "partial") == is_claim
    assert ("receipt.pdf" in parsed.outcome.reason) == is_claim


async def test_a_file_that_nobody_has_or_that_is_in_a_folder_of_the_call_is_not_asked_for(tmp_path):
    @tool
    async def read_all(folder: str) -> str:
        """Read all files in a folder."""
        return "900 euros of rent; 3,965 euros paid"

    async with reading(tmp_path, LEASE, reply("The rent is 900 euros.")) as it:
        it.write("lease.pdf")
        await it.do(**PAPERS)
        assert it.calls == 2
    replies = call("read_all", folder="papers"), reply("The rent is 900 euros, 3,965 were paid.")
    async with reading(tmp_path, *replies, more=[read_all]) as it:
        it.write("papers/lease.pdf")
        it.write("papers/receipt.pdf")
        await it.do(**PAPERS)
        assert it.calls == 2


async def test_a_drawing_or_a_run_that_only_other_calls_precede_is_asked_for(tmp_path):
    for order, answer in (
        ("Run the tests.", "I ran the tests: 5 passed."),
        ("Draw a chart.", "I drew the chart."),
    ):
        async with reading(tmp_path, LEASE, reply(answer)) as it:
            await it.lacking("Work", order)
            assert it.calls == 3


async def test_a_file_that_the_step_made_is_a_saved_one(tmp_path):
    @tool
    async def get_copy(path: str) -> str:
        """Keep a copy."""
        it.write("copy.txt")
        return "Kept."

    replies = call("get_copy", path="a"), reply("I saved the page in a file.")
    async with working(tmp_path, *replies, more=[get_copy]) as it:
        await it.do("Save", "Save the page in a file.")
        assert it.calls == 2


@pytest.mark.parametrize("answer", ["It fell in 1989.\n\n", ""])
async def test_a_model_can_confirm_an_answer_that_only_looks_unfinished(tmp_path, answer):
    asked = "When did the wall fall?"
    replies = reply("It fell in 1989."), reply(f"{answer}{AS_IT_IS}")
    async with working(tmp_path, *replies) as it:
        assert (await it.do("Berlin", asked)).endswith("in 1989.")
        assert it.calls == 2


@pytest.mark.parametrize("confirmed", ["I ran all of it: 8 tests pass.\n\n", ""])
async def test_what_only_a_tool_can_show_is_marked_also_if_the_model_insists(tmp_path, confirmed):
    replies = reply("I ran all of it: 8 tests pass."), reply(f"{confirmed}{AS_IT_IS}")
    async with working(tmp_path, *replies) as it:
        answer, lacks = await it.lacking("Tests", "Run the tests.")
        assert AS_IT_IS not in answer
        assert "no tool" in lacks
        assert it.calls == 2


@pytest.mark.parametrize(
    ("title", "answer"),
    [
        ("Write eight tests and run them.", "Done.\n\n```\n8 passed in 0.02s\n```"),
        ("Read http://127.0.0.1:1/a.html and say its title.", 'I opened the page: it is "Fees".'),
        ("Run the checks.", "They are all fine.\n\nNow I will write up the numbers."),
    ],
)
async def test_no_form_of_insisting_lets_unsupported_work_pass_as_done(tmp_path, title, answer):
    async with working(tmp_path, reply(answer), reply(f"{answer}\n\n{AS_IT_IS}")) as it:
        assert answer in (await it.lacking(title, title))[0]
        assert it.calls == 2


TRANSLATED = "Die Tests wurden bestanden und die Datei report.md wurde geschrieben."


@pytest.mark.parametrize(
    "asked",
    [
        "Translate into German: The tests passed and the file report.md was written.",
        'Translate "The tests passed and the file report.md was written." into German.',
    ],
)
async def test_what_a_text_to_translate_says_is_no_claim_of_the_member(tmp_path, asked):
    async with working(tmp_path, reply(TRANSLATED)) as it:
        assert await it.do("Translate", asked) == TRANSLATED
        assert it.calls == 1


async def test_an_answer_without_the_tools_of_its_member_is_kept_with_what_it_lacks(tmp_path):
    names = "- 2024-family\n- 2024-work\n- 2024-trips"
    replies = reply(names), reply(f"{names}\n{AS_IT_IS}")
    async with working(tmp_path, *replies, member="file_manager") as it:
        answer, lacks = await it.lacking("Names", "Propose names for three folders; create nothing.")
    assert names in answer
    assert "no tool" in lacks


async def test_a_failure_is_an_honest_answer(tmp_path):
    text = "STEP FAILED: trip.docx cannot be written; 3 errors."
    async with working(tmp_path, reply(text)) as it:
        assert await it.do("Write trip.docx") == text
        assert it.calls == 1


@pytest.mark.parametrize(
    "title", ["Write trip.docx", "Schreibe die Reise in trip.docx", "Écris trip.docx", "把行程写入trip.docx"]
)
async def test_a_file_that_the_step_names_must_be_there(tmp_path, title):
    answer = reply('{"days": ["Rome", "Naples"]}')
    async with working(tmp_path, answer, call("python_repl_tool", code="1"), reply("Ready.")) as it:
        assert "trip.docx" in (await it.lacking(title))[1]
        assert it.calls == 3, "one question for the work and the file"


@pytest.mark.parametrize(
    ("title", "answer"),
    [
        ("Write out/trip.docx", "I wrote trip.docx."),
        ("Write trip.docx", "I wrote `out/Trip.docx`."),
        ("Write trip.docx", "Done, see [the trip](trip.docx): it is saved as trip.docx."),
        ("Convert the table to trip.docx", "Converted."),
    ],
)
async def test_one_missing_file_is_named_once(tmp_path, title, answer):
    async with working(tmp_path, reply(answer), WRITE, reply("It is there.")) as it:
        await it.do(title, "The plan of the week.")
        prompts = [str(one["messages"][-1]["content"]) for one in it.server.requests]
    asked = [one for one in prompts if "not from the user" in one]
    assert [one.casefold().count("trip.docx") for one in asked] == [1]
    assert "called no tool" not in asked[0]


async def test_files_of_one_name_in_different_folders_are_all_named(tmp_path):
    replies = call("python_repl_tool", code="1"), reply("Ready.")
    async with working(tmp_path, *replies) as it:
        _, lacks = await it.lacking("Write may/rates.csv and june/rates.csv")
    assert "may/rates.csv" in lacks
    assert "june/rates.csv" in lacks


async def test_a_missing_file_is_written_when_it_is_asked_for(tmp_path):
    replies = call("python_repl_tool", code="1"), reply("Ready."), WRITE, reply("It is there.")
    async with working(tmp_path, *replies) as it:
        assert await it.do("Write trip.docx") == "It is there."
        assert it.calls == 4


async def test_a_file_in_another_folder_counts(tmp_path):
    async with working(tmp_path, WRITE, reply("Written.")) as it:
        assert await it.do("Write Trip.docx") == "Written."
        assert it.calls == 2


async def test_files_from_before_the_step_are_only_read_or_were_removed_on_purpose(tmp_path):
    @tool
    async def delete_file(path: str) -> str:
        """Delete a file."""
        (it.workspaces.open(THREAD).path / path).unlink()
        return f"Deleted {path}."

    replies = call("delete_file", path="old.csv"), reply("old.csv is deleted.")
    async with working(tmp_path, *replies, more=[delete_file]) as it:
        it.write("old.csv")
        assert await it.do("Delete old.csv") == "old.csv is deleted."
        assert it.calls == 2


@pytest.mark.parametrize(
    "said",
    [
        "The table is saved as `x.csv`.",
        "![Chart](figures/x.png)",
        "[x](x.csv)",
        "The sum is 45. The chart is in `out/x.png`.",
        "Das Bild liegt unter out/x.png bereit.",
        "Saved as `Makefile`.",
    ],
)
async def test_a_file_that_the_answer_names_as_written_must_be_there(tmp_path, said):
    async with working(tmp_path, call("python_repl_tool", code="1"), reply(said)) as it:
        answer, lacks = await it.lacking()
        assert it.calls == 3
    assert said in answer
    assert re.search(r"x\.(csv|png)|Makefile", lacks)


async def test_names_that_a_tool_or_the_step_gave_are_no_files_of_the_member(tmp_path):
    listed = call("python_repl_tool", code="1")
    said = "The archive holds `a.csv`; the server calls it b.csv."
    async with working(tmp_path, listed, reply(said), has_files=True) as it:
        asked = "What is in the archive? It has a.csv, or B.csv."
        assert await it.do("Look", asked) == said
        assert it.calls == 2


async def test_a_file_that_the_user_did_not_let_it_write_is_not_asked_for(tmp_path):
    request = rejected("write_file", path="p.md", content="x")
    async with working(
        tmp_path, call("python_repl_tool", code="1"), reply("q.md was not written, p.md was rejected.")
    ) as it:
        _, lacks = await it.lacking("Write p.md and q.md", continued=request)
    assert "q.md" in lacks and "p.md" not in lacks


@pytest.mark.parametrize(
    "answer", ["I wrote `p.md` and `q.md`.", "Both are there: `q.md` and `p.md` are saved."]
)
async def test_a_file_that_the_user_did_not_let_it_write_cannot_be_claimed(tmp_path, answer):
    replies = call("write_file", path="q.md", content="x"), reply(answer)
    async with working(tmp_path, *replies) as it:
        step = ("Write p.md and q.md",)
        _, lacks = await it.lacking(*step, continued=rejected("write_file", path="p.md", content="x"))
    assert "p.md" in lacks and "q.md" not in lacks


@pytest.mark.parametrize(
    "answer",
    [
        "I wrote `q.md`, but you rejected `p.md`.",
        "`q.md` is saved. `p.md` was not written, as you decided.",
        "q.md is there.",
        "Ich habe q.md geschrieben, p.md wurde abgelehnt.",
    ],
)
async def test_who_says_that_a_file_was_rejected_is_not_asked_for_it(tmp_path, answer):
    replies = call("write_file", path="q.md", content="x"), reply(answer)
    async with working(tmp_path, *replies) as it:
        step = ("Write p.md and q.md",)
        await it.do(*step, continued=rejected("write_file", path="p.md", content="x"))
        assert it.calls == 2


def edited(name, written, ran):
    """Return the messages of a call that the user changed before it ran."""
    result = mark_edited(ToolMessage("Done.", tool_call_id="1", name=name), name, "1", ran)
    return [AIMessage("", tool_calls=[{"name": name, "args": written, "id": "1"}]), result]


@pytest.mark.parametrize("answer", ["Written.", "It is saved as notes/p2.md."])
async def test_a_path_that_the_user_changed_is_not_asked_for_under_its_old_name(tmp_path, answer):
    ran = {"path": "notes/p2.md", "content": "x"}
    async with working(tmp_path, reply(answer)) as it:
        it.write("notes/p2.md")
        assert (
            await it.do("Write p.md", continued=edited("write_file", {**ran, "path": "p.md"}, ran)) == answer
        )
        assert it.calls == 1


async def test_another_edit_of_a_call_renames_no_file(tmp_path):
    ran = {"path": "p.md", "content": "y"}
    async with working(tmp_path, reply("Written.")) as it:
        await it.lacking("Write p.md", continued=edited("write_file", {**ran, "content": "x"}, ran))


@tool
async def bash_tool(cmd: str) -> str:
    """Run a command."""
    return "[no output]"


@tool
async def move_file(source: str, destination: str) -> str:
    """Move a file."""
    return f"Moved {source} to {destination}."


@tool
async def file_operations(operations: list[dict[str, str]]) -> str:
    """Change files."""
    return "Done."


MADE = call("python_repl_tool", code="open('p.csv', 'w').write('1')")


@pytest.mark.parametrize(
    "calls",
    [
        [MADE, call("move_file", source="p.csv", destination="archive/2024.csv")],
        [MADE, call("file_operations", operations=[{"action": "delete", "path": "p.csv"}])],
        [MADE, call("bash_tool", cmd="rm -f p.csv && ls")],
        [MADE, call("bash_tool", cmd="mv p.csv /tmp/x.csv; cat p.csv")],
        [MADE, call("bash_tool", cmd="rm *.csv")],
        [call("python_repl_tool", code="import os\nopen('p.csv', 'w').close()\nos.unlink('p.csv')")],
        [call("python_repl_tool", code="one = Path('p.csv')\none.write_text('1')\none.unlink()")],
    ],
)
@pytest.mark.parametrize(
    "answer", ["The table was checked and put away.", "I wrote p.csv and removed it again."]
)
async def test_a_file_that_the_step_itself_removed_is_not_missing(tmp_path, calls, answer):
    more = [bash_tool, move_file, file_operations]
    async with working(tmp_path, *calls, reply(answer), more=more) as it:
        step = "Write p.csv, check it and put it away"
        assert await it.do(step) == answer
        assert it.calls == len(calls) + 1


@pytest.mark.parametrize(
    "cmd", ["rm -f p.csv; python make.py > p.csv", "rm other.csv", "rm -f p.csv", "cat notes >> p.csv"]
)
async def test_a_file_that_was_only_cleared_away_before_is_missing(tmp_path, cmd):
    async with working(tmp_path, call("bash_tool", cmd=cmd), reply("Ready."), more=[bash_tool]) as it:
        assert "p.csv" in (await it.lacking("Write p.csv"))[1]


async def test_without_a_workspace_no_file_is_checked(tmp_path):
    async with working(tmp_path, call("python_repl_tool", code="1"), reply("Saved as x.csv.")) as it:
        assert await it.do("Write trip.docx", items_of_thread=None) == "Saved as x.csv."


async def test_the_files_of_the_request_are_due_with_the_last_member_that_may_write(tmp_path):
    own, other = PlanStepSummary(1, "coder", "a", "in_progress", True), "file_manager"
    replies = call("python_repl_tool", code="1"), reply("Ready.")
    async with working(tmp_path, *replies) as it:
        later = PlanStepSummary(2, other, "b", "not_started")
        assert await it.do(request="Write trip.docx", plan=[own, later]) == "Ready."
    async with working(tmp_path, *replies) as it:
        report = PlanStepSummary(2, "reporter", "r", "not_started")
        assert "trip.docx" in (await it.lacking(request="Write trip.docx", plan=[own, report]))[1]


async def test_a_result_that_ends_the_step_by_a_call_is_checked_too(tmp_path):
    end = call("terminate", status="success", result="Saved as `trip.docx`.")
    replies = call("python_repl_tool", code="1"), end, WRITE, end
    async with working(tmp_path, *replies, more=[terminate_tool()]) as it:
        assert await it.do() == "Saved as `trip.docx`."
        assert it.calls == 4
    async with working(tmp_path, end, more=[terminate_tool()]) as it:
        assert "no tool" in (await it.lacking())[1]
        assert it.calls <= 3


async def test_what_the_user_answered_to_a_question_supports_a_result(tmp_path):
    @tool
    async def ask_human(question: str) -> str:
        """Ask the user."""
        return "2024"

    replies = call("ask_human", question="Which year?"), reply("It is about 2024.")
    async with working(tmp_path, *replies, more=[ask_human]) as it:
        assert await it.do() == "It is about 2024."
        assert it.calls == 2


@pytest.mark.parametrize(
    "answer",
    ["data.csv does not exist.", "Die Datei data.csv fehlt.", "data.csv n'existe pas.", "data.csv 不存在。"],
)
async def test_a_missing_file_that_the_step_reads_is_the_members_to_report(tmp_path, answer):
    async with working(tmp_path, reply(answer)) as it:
        assert await it.do("Read", "Average data.csv.") == answer
        assert it.calls == 1


async def test_a_member_without_file_tools_answers_for_the_file_that_its_step_asks_for(tmp_path):
    replies = call("tavily_search", query="tea"), reply("Ready.")
    async with working(tmp_path, *replies, has_files=False) as it:
        _, lacks = await it.lacking("Save the prices as prices.csv")
        assert "prices.csv" in lacks
        assert await it.do(request="Save prices as prices.csv") == "Ready.", "others may write it"


async def test_a_file_that_is_not_there_is_marked_also_if_the_model_insists(tmp_path):
    replies = call("python_repl_tool", code="1"), reply("Saved as x.csv."), reply(AS_IT_IS)
    async with working(tmp_path, *replies) as it:
        assert "x.csv" in (await it.lacking())[1]
        assert it.calls == 3


async def test_the_first_answer_is_the_result_that_is_left_at_the_limit_of_model_calls(tmp_path):
    replies = call("python_repl_tool", code="1"), reply("The trip goes to Rome.")
    async with working(tmp_path, *replies, limits=StepLimits(model_calls=2)) as it:
        answer, lacks = await it.lacking("Write trip.docx")
    assert "Rome" in answer
    assert "trip.docx" in lacks


async def test_what_was_answered_in_an_earlier_turn_is_known(tmp_path):
    asked = "Did the tests pass?"
    earlier = [HumanMessage("Test it"), AIMessage("All 8 tests passed in 12 seconds."), HumanMessage(asked)]
    answer = "Yes: the tests passed, in 12 seconds."
    async with working(tmp_path, reply(answer)) as it:
        assert await it.do(asked, asked, asked, conversation=earlier) == answer
        assert it.calls == 1


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("Save the primes below 30 in a file.", "I saved the primes below 30 in a file."),
        ("Draw a pie chart of the shares.", "I drew the pie chart."),
        ("Speichere die Primzahlen in einer Datei.", "Die Primzahlen sind in einer Datei gespeichert."),
    ],
)
async def test_a_program_that_left_no_file_has_saved_and_drawn_nothing(tmp_path, step, answer):
    run = call("python_repl_tool", code="print(4)")
    async with working(tmp_path, run, reply(answer)) as it:
        it.write("old.csv")
        assert "support" in (await it.lacking("Work", step))[1]

    for written in ("new.csv", "old.csv"):  # made, or changed

        @tool("python_repl_tool")
        async def save(code: str) -> str:
            """Run Python."""
            it.write(written, "4")  # noqa: B023 - it is called within this iteration
            return "4"

        async with working(tmp_path / written, run, reply(answer), programs=[save]) as it:
            it.write("old.csv")
            assert await it.do("Work", step) == answer


async def test_a_file_that_was_deleted_before_a_pause_is_not_missing(tmp_path):
    calls = AIMessage("", tool_calls=[{"name": "delete_file", "args": {"path": "old.md"}, "id": "1"}])
    done = ToolMessage("Deleted old.md.", tool_call_id="1", name="delete_file")
    async with working(tmp_path, reply("I have deleted old.md.")) as it:
        assert await it.do("Delete old.md.", continued=[calls, done]) == "I have deleted old.md."


async def test_a_file_that_the_user_renamed_is_missing_under_the_name_that_the_answer_claims(tmp_path):
    change = edited("write_file", {"path": "p.md"}, {"path": "notes/p2.md"})
    async with working(tmp_path, reply("I wrote p.md.")) as it:
        it.write("notes/p2.md")
        assert "p.md" in (await it.lacking("Write p.md", continued=change))[1]
    async with working(tmp_path / "named", reply("I wrote p.md, as notes/p2.md.")) as it:
        it.write("notes/p2.md")
        await it.do("Write p.md", continued=change)
        assert it.calls == 1


@pytest.mark.parametrize("cmd", ["cat test_calc.py", "wc -l *.py | sort", "ls; head -n 5 test_calc.py"])
async def test_a_command_that_only_shows_files_has_run_no_tests(tmp_path, cmd):
    step, answer = "Run the tests in test_calc.py.", "I ran the tests: 5 passed."
    replies = call("bash_tool", cmd=cmd), reply(answer)
    async with working(tmp_path, *replies, more=[bash_tool]) as it:
        it.write("test_calc.py")
        assert "support" in (await it.lacking("Work", step))[1]
    ran = call("bash_tool", cmd="cat test_calc.py && python -m pytest"), reply(answer)
    async with working(tmp_path / "ran", *ran, more=[bash_tool]) as it:
        it.write("test_calc.py")
        assert await it.do("Work", step) == answer


async def test_a_file_is_shown_whatever_it_says(tmp_path):
    text = "PARTIAL: disk 2\nSTEP FAILED: disk 3"
    answer = f"log.txt contains:\n\n```\n{text}\n```"
    async with working(tmp_path, call("read_file", path="log.txt"), reply(answer)) as it:
        it.write("log.txt", text)
        assert await it.do("Show log.txt") == answer


async def test_a_file_that_was_written_before_a_pause_counts(tmp_path):
    run = {"name": "python_repl_tool", "args": {"code": "save()"}, "id": "1"}
    done = [AIMessage("", tool_calls=[run]), ToolMessage("4", tool_call_id="1", name="python_repl_tool")]
    step, answer = "Save the primes in a file.", "I saved the primes in a file."
    async with working(tmp_path, reply(answer)) as it:
        it.write("primes.txt")
        assert await it.do("Work", step, continued=done) == answer

"""Nothing that a person looks at moves while events arrive, in whatever order the team works."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, ViewportSize

from tests.page.fed import FEED, feed, open_run
from tests.page.streams import Event
from tests.serving import ServerProcess

_SIZES = [
    pytest.param(ViewportSize(width=1280, height=800), id="desktop"),
    pytest.param(ViewportSize(width=375, height=700), id="telephone"),
]
_EXAMPLES_QUICK, _EXAMPLES = 4, 60
_PLACES = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const place = (one, top = 0) => {
        const { x, y, width } = one.getBoundingClientRect();
        return [x, y - top, width].map(Math.round);
    };
    const top = document.querySelector(".column").getBoundingClientRect().top;
    const found = { field: place(document.querySelector("#question")) };
    found.question = place(document.querySelector(".run .question"), top);
    const first = document.querySelector(".answer .markdown > *");
    if (first?.textContent) found.answer = [first.textContent.slice(0, 8), ...place(first, top)];
    for (const tab of document.querySelectorAll("[role=tab]"))
        if (tab.checkVisibility()) found[tab.id] = place(tab);
    done(found);
})))"""
"""Where the field and the tabs stand in the window, and the question and its answer in the conversation."""
_STEPS = [("researcher", "Read"), ("coder", "Compute"), ("reporter", "Report")]
_TEXT = "A paragraph of the answer that is long enough for a line or two of a window that is narrow.\n\n"
_RESULTS = st.sampled_from(["4", "row\n" * 60])
_APPROVAL = {
    "tool_name": "bash_tool",
    "tool_input": {"cmd": "echo 4\n" * 9},
    "tool_call_id": "c",
    "answers": {},
}


def _plan(done: int, **more: Any) -> Event:
    steps = [
        {"id": at, "agent_name": name, "title": title, "description": f"{title} all of it."}
        | {"status": "completed" if at <= done else "in_progress" if at == done + 1 else "not_started"}
        for at, (name, title) in enumerate(_STEPS, 1)
    ]
    return {"type": "plan", "title": "The plan", "steps": steps, **more}


def _tool(agent: str, result: str) -> list[Event]:
    named = {"tool_call_id": f"{agent}-call", "tool_name": "python_repl_tool", "agent_id": agent}
    return [
        {"type": "tool_call", **named, "tool_input": {"code": "print(1+3)\n" * 8}},
        {"type": "tool_call_result", **named, "tool_result": result},
    ]


def _asked(agent: str, kind: str) -> list[Event]:
    payload = _APPROVAL if kind == "tool_approval" else {"question": "Which year?", "options": ["1", "2"]}
    asked = {"interrupt_id": f"{agent}-asks", "kind": kind, "payload": payload, "options": []}
    asker = {"agent_name": agent, "agent_id": agent, "step_id": 1}
    return [
        {"type": "step_interrupt", **asked, **asker},
        {"type": "step_resumed", "interrupt_id": f"{agent}-asks", **asker},
    ]


def _browsed(agent: str) -> list[Event]:
    seen = {"url": "https://e.test/", "title": "A page", "screenshot": "/icon.svg", "agent_id": agent}
    return [{"type": "browser_state", **seen}]


def _lost(agent: str) -> list[Event]:
    return [
        {"type": "model_unreachable", "agent_name": agent, "agent_id": agent, "attempt": 1, "left": 60.0}
        | {"reason": "It does not answer.", "seconds": 1.0},
        {"type": "start_of_llm", "agent_name": agent, "agent_id": agent},
    ]


def _wrote(agent: str) -> list[Event]:
    """A person writes to the team; the lead replies at once to one message, and to another one later."""
    written = [
        {"type": "user_message", "message_id": f"{agent}-{which}", "content": "In euros, please. " * 5}
        for which in ("now", "later")
    ]
    return [*written, _replied(f"{agent}-now")]


def _replied(message: str) -> Event:
    return {"type": "user_message_answer", "message_id": message, "content": "Gladly, in euros.\n" * 3}


def _said(agent: str, words: int) -> list[Event]:
    return [
        {"type": "message", "message_id": f"{agent}-says", "delta": {"content": _TEXT}, "agent_id": agent}
        for _ in range(words)
    ]


def _turn(agent: str) -> st.SearchStrategy[list[Event]]:
    """What a member does in its turn, with what a person is asked meanwhile."""
    works = st.one_of(
        _RESULTS.map(lambda result: _tool(agent, result)),
        st.sampled_from(["question", "tool_approval"]).map(lambda kind: _asked(agent, kind)),
        st.integers(1, 4).map(lambda words: _said(agent, words)),
        st.just(_browsed(agent)),
        st.just(_lost(agent)),
        st.just(_wrote(agent)),
        st.sampled_from([name for name, _ in _STEPS]).map(lambda name: [_replied(f"{name}-later")]),
    )
    named = {"agent_name": agent, "agent_id": agent}
    return st.lists(works, max_size=4).map(
        lambda done: [
            {"type": "start_of_agent", **named},
            *(event for each in done for event in each),
            {"type": "end_of_agent", **named},
        ]
    )


_ASKED = [{"role": "user", "content": "How much?"}]
_BEGUN: list[Event] = [
    {"type": "run", "run_id": "run-running", "thread_id": "running"},
    {"type": "start_of_workflow", "workflow_id": "w", "input": _ASKED},
]
_WORDS_TO_AN_ANSWER: list[Event] = [
    *_BEGUN,
    _plan(1),
    {"type": "start_of_agent", "agent_name": "coder", "agent_id": "coder"},
    *_wrote("coder"),
    {"type": "end_of_agent", "agent_name": "coder", "agent_id": "coder"},
    _plan(2),
    {"type": "start_of_agent", "agent_name": "reporter", "agent_id": "reporter"},
    *_said("reporter", 2),
    *_wrote("reporter"),
    _replied("coder-later"),
    *_said("reporter", 2),
    _replied("reporter-later"),
]
_ENDS = st.sampled_from(["completed", "failed", "cancelled", "interrupted"])


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Draw the events of a run from its question to its end."""
    events: list[Event] = [
        *_BEGUN,
        *([_plan(-1, draft=True)] if draw(st.booleans()) else []),
    ]
    for done, (agent, _) in enumerate(_STEPS):
        events += [_plan(done), *draw(_turn(agent))]
    end = draw(_ENDS)
    if end == "completed":
        events += [_plan(3)]
    if end == "interrupted":
        payload = {"question": "Which year?", "options": []}
        events += [{"type": "interrupt", "interrupt_id": "i", "kind": "question", "payload": payload}]
    events += [{"type": "run_status", "status": end}]
    return [*events, {"type": "final_session_state", "messages": _ASKED}]


@pytest.fixture(params=_SIZES)
def opened(request: pytest.FixtureRequest, browser: Browser, seeded: ServerProcess) -> Iterator[Page]:
    context = browser.new_context(base_url=seeded.url, locale="en-GB", viewport=request.param)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.add_init_script(f"({FEED})()")
    yield page
    context.close()


def moved(page: Page, events: Sequence[Event]) -> list[str]:
    """Feed a run event by event; return what moved, each with the event after which it did."""
    begin = 2
    open_run(page, events[:begin])
    before: dict[str, list[Any]] = page.evaluate(_PLACES)
    found: list[str] = []
    for at, event in enumerate(events[begin:], begin + 1):
        feed(page, [event], at)
        after: dict[str, list[Any]] = page.evaluate(_PLACES)
        for name, place in after.items():
            last = before.get(name, place)
            # Another answer than before has a place of its own.
            is_same = name != "answer" or last[0] == place[0]
            if is_same and last != place:
                found.append(f"{name} from {last} to {place} after {event['type']}")
        before |= after
    return found


def _check(page: Page, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    @given(streams())
    @example(_WORDS_TO_AN_ANSWER)
    def run(events: list[Event]) -> None:
        assert moved(page, events) == []

    run()


def test_field_tabs_question_and_answer_stay_where_they_are(opened: Page):
    _check(opened, _EXAMPLES_QUICK)


@pytest.mark.slow
def test_they_stay_in_many_orders_of_events(opened: Page):
    _check(opened, _EXAMPLES)

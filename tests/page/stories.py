"""Runs that ended before the server starts: their events are put into its store."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maniple.store import EventRecord, RunRecord, Thread, open_store


@dataclass
class Story:
    """The events of a run; `files` are its artifacts by name, `sources` titles of pages by address."""

    title: str
    events: list[tuple[str, dict[str, Any], float]] = field(default_factory=list)
    """The name of each, its data, and when it happened."""
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    thread: str = ""
    """The id of its conversation, which several may have; by default that of the run."""
    now: float = 1_790_000_000.0
    _agent: str = ""

    @property
    def name(self) -> str:
        """The id of its run."""
        return self.title.lower().replace(" ", "-")

    def tell(self, kind: str, **data: Any) -> None:
        """Add an event."""
        self.events.append((kind, data, self.now))

    def open(self) -> None:
        """Begin the run."""
        self.tell("run", run_id=self.name, thread_id=self.thread or self.name)
        self.tell("start_of_workflow", workflow_id=self.name, input=[{"role": "user", "content": self.title}])

    def begin(self, agent: str) -> None:
        """Let another member work."""
        self.end()
        self._agent = agent
        self.tell("start_of_agent", agent_name=agent, agent_id=f"{agent}_{len(self.events)}")

    def end(self) -> None:
        """End the turn of the member at work."""
        if self._agent:
            self.tell("end_of_agent", agent_name=self._agent, agent_id="")
            self._agent = ""

    def say(self, *words: str) -> None:
        """Let the member say something, a delta for each of `words`, and count what it took."""
        message = f"m{len(self.events)}"
        for delta in words:
            self.tell("message", message_id=message, delta={"content": delta})
        counted = {"input_tokens": 900, "output_tokens": 100, "seconds": 1.5}
        self.tell("usage", agent_name=self._agent, model="scripted", **counted)

    def call(self, tool: str, result: str, seconds: float = 0.5, **given: Any) -> None:
        """Let the member call a tool, which takes so long."""
        call = f"c{len(self.events)}"
        self.tell("tool_call", tool_call_id=call, tool_name=tool, tool_input=given)
        self.now += seconds
        self.tell("tool_call_result", tool_call_id=call, tool_name=tool, tool_result=result)

    def close(self, answer: str = "") -> None:
        """End the run; with its `answer`, which the service then has as its report."""
        self.end()
        messages = [{"role": "assistant", "content": answer}] if answer else []
        self.tell("run_status", status="completed")
        self.tell("end_of_workflow", workflow_id=self.name, messages=[])
        self.tell("final_session_state", messages=messages)


async def keep(home: Path, *stories: Story) -> None:
    """Put runs into the store of a server that is to start in `home`."""
    folder = home / "data"
    folder.mkdir(parents=True, exist_ok=True)
    async with open_store(folder / "maniple.db", folder / "artifacts", server=True) as store:
        for story in stories:
            now, name, thread = time.time(), story.name, story.thread or story.name
            if await store.threads.get(thread, "") is None:
                await store.threads.create(Thread(thread, "", story.title, now, now))
            run = await store.runs.add(RunRecord(name, thread, "", "server", "none", "completed", "{}", now))
            events = list(story.events)
            for file, (media_type, content) in story.files.items():
                made = await store.artifacts.add(run, file, media_type, content)
                told = {"artifact_id": made.artifact_id, "name": file, "media_type": media_type}
                told |= {"size": len(content), "url": f"/api/artifacts/{made.artifact_id}"}
                events.insert(-3, ("artifact", told, story.now))
            records = [
                EventRecord(number, kind, json.dumps(data), at)
                for number, (kind, data, at) in enumerate(events, start=1)
            ]
            await store.events.append([(name, records)])
            for address, title in story.sources.items():
                await store.evidence(run.run_id).add(address, title, "page", f"{title}.")


def long_story(
    calls: int = 600, words: int = 3_500, title: str = "A long piece of work", answer: str = ""
) -> Story:
    """A run of about 5,000 events: turns of ten calls each, with texts in between."""
    story = Story(title)
    story.open()
    for number in range(calls):
        if number % 10 == 0:
            story.begin("researcher" if number % 20 == 0 else "coder")
        story.say(*["word by word "] * (words // calls))
        found = [{"title": f"Page {n}", "url": f"https://e.test/{n}", "content": "x" * 300} for n in range(5)]
        if number % 3 == 0:
            story.call("tavily_search", json.dumps(found), query=f"question {number}")
        else:
            story.call("python_repl_tool", "1\n" * 200, code=f"print({number})\n" * 20)
    story.begin("reporter")
    story.say(*([answer] if answer else ["# Done\n\n", "It is **done**."]))
    story.close(answer)
    return story


_SECTION = """## What happened in year {n}

Solar power grew by **{n} percent**, says the agency [{a}], while wind power *fell* in the north of
the country; nobody expected that [{b}]. The energy is $E_{{{n}}} = m c^2 + \\frac{{{n}}}{{2}}$, as
`growth_{n}` computes it.

- First, the panels became cheaper [{b}].
- Second, the grid was extended, as [the operator](https://e.test/grid/{n}) says.

| Year | Power | Share | Note |
|:-----|------:|------:|:-----|
| {n} | {n}3 GW | {n} % | the first row |
| {n}0 | {n}4 GW | {n} % | the second row |
| {n}1 | {n}5 GW | {n} % | the third row |

```python
def growth_{n}(years: int) -> float:
    return sum(x**2 for x in range(years)) / {n}
```

"""


def report_story(characters: int = 100_000, sources: int = 12) -> Story:
    """A run with a report of this length: prose with citations, formulas, lists, tables and code."""
    story = Story("How solar power grew")
    story.open()
    story.sources = {f"https://e.test/source/{n}": f"Source {n}" for n in range(1, sources + 1)}
    text, number = "# How solar power grew\n\n", 0
    listed = "".join(f"- [{n}] [Source {n}](https://e.test/source/{n})\n" for n in range(1, sources + 1))
    while len(text) + len(listed) < characters:
        number += 1
        text += _SECTION.format(n=number, a=number % sources + 1, b=(number + 5) % sources + 1)
    text += f"## Sources\n\n{listed}"
    step = {
        "id": 0,
        "agent_name": "reporter",
        "title": "Report",
        "description": "Report.",
        "status": "completed",
    }
    story.tell("plan", title=story.title, steps=[step])
    story.begin("reporter")
    story.say(*(text[start : start + 500] for start in range(0, len(text), 500)))
    story.close(text)
    return story

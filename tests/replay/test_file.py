"""The file that plays a run: what is in it, what is not, and how much."""

import base64
import json
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from maniple.replay import build_replay, event_lines
from maniple.replay import file as replay_file
from maniple.replay.player import load_player
from maniple.run_files.pictures import FigureFinder
from maniple.store import EventRecord, RunRecord, Store, Thread, open_store
from maniple.workspace import Workspaces
from tests.replay.run_records import BROWSED, EVIL, events, run_record
from tests.store.samples import content_path

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n picture"
JPEG = b"\xff\xd8\xff\xe0 picture"


class Document(HTMLParser):
    """A file as a browser reads it: its elements, and the text right after the beginning of each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")
        self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data

    def block(self, name: str) -> str:
        """Return the text of the data block of this id."""
        return self.texts[next(at for at, (_, known) in enumerate(self.tags) if known.get("id") == name)]

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return what the lines of a data block say."""
        return [json.loads(line) for line in self.block(name).split("\n") if line]

    def paths(self) -> list[str]:
        """Return the addresses of what is enclosed."""
        return [one["path"] for one in self.lines("enclosures")]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store with one run without events."""
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t1", "", "T", 1.0, 1.0))
        await store.runs.add(run_record())
        yield store


async def file_of(store: Store, *told: tuple[str, Any], run: RunRecord | None = None) -> Document:
    """Return the file of the run after these events."""
    if told:
        await store.events.append([("r1", events(*told))])
    record = run or run_record()
    with TemporaryDirectory() as folder:
        replay = await build_replay(
            store, record, {"by_agent": []}, FigureFinder(store, Workspaces(Path(folder)), record)
        )
        return Document(b"".join([piece async for piece in replay.pieces]).decode())


async def test_it_holds_the_question_and_every_event_in_order(store: Store) -> None:
    file = await file_of(store, *BROWSED)
    known = json.loads(file.block("run"))
    assert (known["run_id"], known["question"], known["status"]) == ("r1", "Buy a hat", "completed")
    told = file.lines("events")
    assert [(one["id"], one["type"]) for one in told] == [
        (at, kind) for at, (kind, _) in enumerate(BROWSED, 1)
    ]
    assert told[-4]["data"] == {"message_id": "n", "delta": {"content": "# Done\n\nA **hat** is bought."}}
    assert json.loads(file.block("left-out")) == {"events": 0, "pictures": 0}


async def test_events_bring_the_times_that_are_known(store: Store) -> None:
    told = [EventRecord(1, "run", "{}", 1795390512.347), EventRecord(2, "run_status", "{}")]
    await store.events.append([("r1", told)])
    file = await file_of(store)
    assert [one.get("at") for one in file.lines("events")] == [1795390512.347, None]


async def test_the_question_of_small_talk_is_reported_with_its_answer(store: Store) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    file = await file_of(store, ("run", {}), ("final_session_state", {"messages": said}))
    assert json.loads(file.block("run"))["question"] == "Hi"


async def test_of_a_run_that_waits_it_has_what_there_is(store: Store) -> None:
    waiting = run_record(status="interrupted")
    file = await file_of(store, *BROWSED[:6], ("interrupt", {"kind": "plan_review"}), run=waiting)
    assert json.loads(file.block("run"))["status"] == "interrupted"
    assert [one["type"] for one in file.lines("events")][-2:] == ["plan", "interrupt"]


async def test_why_a_run_failed_is_in_it_although_no_event_says_so(store: Store) -> None:
    file = await file_of(
        store, *BROWSED[:6], run=run_record(status="failed", error="Its process was killed.")
    )
    assert json.loads(file.block("run"))["error"] == "Its process was killed."


async def test_a_run_of_five_thousand_events_is_in_it_whole(store: Store) -> None:
    told = [("message", {"message_id": "m", "delta": {"content": f"word {at} "}}) for at in range(5_000)]
    file = await file_of(store, *told)
    assert [one["id"] for one in file.lines("events")] == list(range(1, 5_001))


async def test_nothing_else_of_the_conversation_is_in_it(store: Store) -> None:
    earlier = [{"role": "user", "content": "A secret"}, {"role": "user", "content": "Fourteen herons"}]
    file = await file_of(
        store,
        ("run", {"run_id": "r1", "thread_id": "secret-name"}),
        ("start_of_workflow", {"input": [*earlier, {"role": "user", "content": "Buy a hat"}]}),
        ("end_of_workflow", {"messages": earlier}),
        ("final_session_state", {"messages": earlier}),
    )
    assert not [text for text in file.texts if "secret" in text.lower() or "Fourteen herons" in text]
    assert json.loads(file.block("run"))["question"] == "Buy a hat"


@pytest.mark.parametrize("words", EVIL)
async def test_texts_are_escaped_in_every_place(store: Store, words: str) -> None:
    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return words
        if isinstance(value, list):
            return [changed(one) for one in value]
        return {key: changed(one) for key, one in value.items()} if isinstance(value, dict) else value

    await store.artifacts.add(run_record(), words, "image/png", PNG)
    await store.evidence("r1").add("https://a.test/", words, "page", words)
    heard = [(type_, changed(data)) for type_, data in BROWSED]
    other = words.replace(" ", "").replace("\n", ""), words.replace("\n", "")
    file = await file_of(store, *heard, other, run=run_record(status=words))
    scripts = [known for tag, known in file.tags if tag == "script"]
    assert scripts == [
        {"type": "application/json", "id": "run"},
        {"type": "application/x-ndjson", "id": "events"},
        {"type": "application/x-ndjson", "id": "enclosures"},
        {"type": "application/json", "id": "left-out"},
        {},
    ]
    elements = " ".join(sorted({tag for tag, _ in file.tags}))
    assert elements == "body div head html link meta noscript script style title"
    assert file.texts[-1] == load_player().script
    told = [json.loads(line) for line in file.block("events").split("\n")[1:-2]]
    assert told[7]["data"]["tool_input"] == {"instruction": words}


async def test_its_policy_lets_its_own_script_and_style_alone_run(store: Store) -> None:
    file = await file_of(store)
    (policy,) = [
        known["content"] for _, known in file.tags if known.get("http-equiv") == "content-security-policy"
    ]
    assert policy == load_player().policy and str(policy).startswith(
        "default-src 'none'; script-src 'sha256-"
    )
    # What a browser takes for the end of a script, or for the beginning of one within it.
    assert not re.search("<(!--|/?script)", load_player().script + load_player().katex, re.I)
    assert "</style" not in load_player().style.lower() and "@import" not in load_player().style


@pytest.mark.parametrize(
    ("pieces", "sets_math"),
    [(["It is $x", "^2$."], True), (["It is \\", "(x\\)."], True), (["It is 4.\n"], False)],
)
async def test_katex_is_in_the_files_of_runs_with_formulas(
    store: Store, pieces: list[str], sets_math: bool
) -> None:
    said = [("message", {"message_id": "m", "delta": {"content": piece}}) for piece in pieces]
    file = await file_of(store, ("tool_call", {"tool_input": {"code": "print('\\n$')"}}), *said)
    scripts = [
        text
        for (tag, known), text in zip(file.tags, file.texts, strict=True)
        if tag == "script" and not known
    ]
    assert scripts == ([load_player().katex] if sets_math else []) + [load_player().script]


async def test_pictures_and_sources_are_enclosed_and_other_files_are_not(store: Store) -> None:
    run = run_record()
    shot = await store.artifacts.add(run, "screenshot.jpg", "image/jpeg", JPEG)
    older, newer = [await store.artifacts.add(run, f"{name}.png", "image/png", PNG) for name in "ab"]
    await store.artifacts.add(run, "table.csv", "text/csv", b"1,2")
    await store.artifacts.add(run, "fake.png", "image/png", b"<script>")
    await store.artifacts.add(run, "drawing.svg", "image/svg+xml", b"<svg/>")
    gone = await store.artifacts.add(run, "gone.png", "image/png", PNG + b"2")
    content_path(store, gone).unlink()
    await store.evidence("r1").add("https://a.test/", "A", "page", "Words")
    file = await file_of(store, *BROWSED)
    pictures = [f"/api/artifacts/{one.artifact_id}" for one in (newer, older, shot)]
    assert file.paths() == ["/api/runs/r1", "/api/runs/r1/sources", *pictures]
    contents = [one["content"] for one in file.lines("enclosures")]
    assert contents[2] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    sources = json.loads(base64.b64decode(contents[1].partition(",")[2]))["sources"]
    assert [(one["number"], one["url"], one["title"]) for one in sources] == [(1, "https://a.test/", "A")]
    assert json.loads(file.block("left-out"))["pictures"] == 0


async def test_pictures_beyond_the_bounds_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_file, "LARGEST_PICTURE", 100)
    monkeypatch.setattr(replay_file, "MAX_PICTURES", 150)
    sizes = {"large": 101, "third": 30, "second": 60, "first": 90}
    names = {}
    for name, size in sizes.items():
        content = PNG.ljust(size, name[:1].encode())
        names[(await store.artifacts.add(run_record(), name, "image/png", content)).artifact_id] = name
    file = await file_of(store)
    assert [names[path.rpartition("/")[2]] for path in file.paths()[2:]] == ["first", "second"]
    assert json.loads(file.block("left-out"))["pictures"] == 2


async def test_what_tools_gave_beyond_the_bounds_is_counted_and_all_else_is_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_lines, "MAX_WORK", 250)
    monkeypatch.setattr(event_lines, "MAX_EVENT_LENGTH", 150)
    monkeypatch.setattr(event_lines, "MAX_TEXT_LENGTH", 50)
    file = await file_of(
        store,
        *(("tool_call_result", {"tool_result": str(at) * 60}) for at in range(3)),
        *(("message", {"delta": {"content": str(at) * 60}}) for at in range(3)),
        ("tool_call_result", {"tool_result": [{"content": "x" * 200}]}),
        ("message", {"delta": {"content": ["many"] * 50}}),
        ("message", "[" * 200),
        ("run_status", {"status": "completed"}),
    )
    kept = [one["id"] for one in file.lines("events")]
    assert kept == [1, 2, 3, 4, 5, 6, 10]
    assert json.loads(file.block("left-out"))["events"] == 3

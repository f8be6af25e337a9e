"""Asks the embedded model everyday questions, one by one, and checks the answers and the files."""

import asyncio
import io
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from langchain_core.messages import HumanMessage
from platformdirs import user_cache_path

from bench.everyday.pages import serving_search
from bench.everyday.questions import Question
from maniple.app import Runtime, open_runtime
from maniple.capabilities.workspace import workspaces_of
from maniple.config import Settings, load_settings
from maniple.events import AgentStarted, SessionState
from maniple.reading.pictures import identify_picture
from maniple.runs.turn import stream_run
from maniple.workspace import Workspace
from tests.environment import CERTIFICATES

_CODE = re.compile(r"```\w*[ \t]*\n(.*?)```", re.S)
_THOUSANDS = re.compile(r"(?<=\d)[,.'\u202f\u00a0 ](?=\d{3}\b)")
_NEVER = re.compile(
    r"\[unverified\]|Traceback|\b\w*(?:Error|Exception)\b *[(:]|\[Errno|os error", re.IGNORECASE
)
"""What no answer may contain: the marks of a check of text by code, and texts of exceptions."""
_MAX_FILES = 200
_MAX_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a question, and whether it is right."""

    question: str
    kind: str
    is_right: bool
    wrong: str
    """What is wrong with it."""
    seconds: float
    agents: Sequence[str]
    answer: str


async def ask_all(questions: Sequence[Question], *, network: bool, report: bool = True) -> list[Outcome]:
    """Ask the embedded model all questions."""
    with tempfile.TemporaryDirectory() as home, serving_search() if network else _closed_port() as search:
        environment = {
            "MANIPLE_DATA_DIR": f"{home}/data",
            "MANIPLE_CACHE_DIR": str(user_cache_path("maniple", appauthor=False)),
            "MANIPLE_EMBEDDED__DISCOVER": "false",
            "SEARXNG_URL": search,
            "MANIPLE_SEARCH__PROVIDERS": "searxng",
            **CERTIFICATES,
        }
        settings = load_settings(
            Path(home) / "none.yaml", env_file=Path(home) / ".env", environment=environment
        )
        async with open_runtime(settings) as runtime:
            outcomes: list[Outcome] = []
            for number, question in enumerate(questions, start=1):
                outcomes.append(await _ask(runtime, settings, question, f"question-{number}"))
                if report:
                    print(_line(number, outcomes[-1]), flush=True)
            return outcomes


@contextmanager
def _closed_port() -> Iterator[str]:
    """Yield an address where nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


async def _ask(runtime: Runtime, settings: Settings, question: Question, thread_id: str) -> Outcome:
    workspaces = await asyncio.to_thread(workspaces_of, settings)
    workspace = await asyncio.to_thread(workspaces.open, thread_id)
    uploads = [(name, io.BytesIO(text.encode())) for name, text in question.files.items()]
    await asyncio.to_thread(workspaces.uploads(thread_id).add, uploads)
    began, agents, answer = time.perf_counter(), list[str](), ""
    async for event in stream_run(runtime.graph, [HumanMessage(question.text)], thread_id=thread_id):
        if isinstance(event, AgentStarted):
            agents.append(event.agent_name)
        elif isinstance(event, SessionState):
            answer = str(event.messages[-1].content)
    seconds = round(time.perf_counter() - began, 1)
    wrong = await asyncio.to_thread(_find_faults, question, answer, workspace)
    if not wrong and question.test:
        wrong = await _run_test(runtime, question, answer, workspace, thread_id)
    return Outcome(question.text, question.kind, not wrong, wrong, seconds, agents, answer)


def _find_faults(question: Question, answer: str, workspace: Workspace) -> str:
    return "; ".join(_iterate_faults(question, answer, workspace))


def _iterate_faults(question: Question, answer: str, workspace: Workspace) -> Iterator[str]:
    if found := _NEVER.search(_CODE.sub("", answer)):
        yield f"contains {found[0]!r}"
    if question.answer and not re.search(question.answer, _THOUSANDS.sub("", answer), re.IGNORECASE):
        yield "not the expected answer"
    files = dict(_read_files(workspace))
    for name, pattern in question.writes.items():
        text = files.get(name, b"").decode(errors="replace")
        if not re.fullmatch(pattern, text, re.IGNORECASE):
            yield f"{name} is not as asked"
    if question.draws and not any(identify_picture(body) and name in answer for name, body in files.items()):
        yield "names no picture"


def _read_files(workspace: Workspace) -> Iterator[tuple[str, bytes]]:
    for path, _ in workspace.files(_MAX_FILES):
        yield path, workspace.read(path, _MAX_BYTES).content


async def _run_test(
    runtime: Runtime, question: Question, answer: str, workspace: Workspace, thread_id: str
) -> str:
    code = "\n".join(_CODE.findall(answer))
    if not code or runtime.sandbox is None:
        return "no code"
    done = await runtime.sandbox.run_python(f"{code}\n{question.test}", key=thread_id, workspace=workspace)
    return "" if done.text().rstrip().endswith("ok") else "the code is wrong"


def _line(number: int, one: Outcome) -> str:
    verdict = "right" if one.is_right else f"WRONG ({one.wrong})"
    return f"{number:2} {one.seconds:6.1f} s  {one.kind:11} {one.question[:60]:60} {verdict}"

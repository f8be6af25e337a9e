"""Secrets in the settings never leave the process, in spite of everything that repeats them."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE

import httpx
import pytest

from maniple.config import load_settings
from maniple.config.secrets import redactor_of
from tests.cli.processes import MANIPLE
from tests.forking import Forked
from tests.openai_server import OpenAIServer, serving
from tests.safety import talk
from tests.safety.canaries import CANARIES, configured, found_in, secret_settings, value_at
from tests.safety.logged_server import open_server
from tests.safety.site import ALL, Site, open_site

# A server, a terminal and a dozen commands, one after the other, all before the first test.
pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]
WORKSPACES = "workspaces"
"""Programs may write there what they received: these files are their own."""


@dataclass
class Evidence:
    """What left the process, by the place where it was found."""

    told: dict[str, str | bytes] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)

    def leaks(self, kind: str) -> dict[str, set[str]]:
        """Return the canaries found in places of this kind."""
        found = {place: found_in(content) for place, content in self.told.items() if place.startswith(kind)}
        assert found, f"nothing was looked at: {kind}"
        return {place: names for place, names in found.items() if names}

    def keep_files(self, when: str, data: Path) -> None:
        for file in data.rglob("*"):
            if file.is_file() and WORKSPACES not in file.relative_to(data).parts:
                self.told[f"file {when} {file.relative_to(data)}"] = file.read_bytes()
                self.told[f"file name {when} {file.name}"] = file.name

    def keep_output(self, words: list[str], env: dict[str, str], home: Path) -> None:
        command = [sys.executable, str(MANIPLE), *words]
        with Forked(command, cwd=home, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, text=True) as done:
            output, notes = done.communicate(timeout=100)
        assert output or notes
        self.told[f"command {len(self.told)} {words[:2]}"] = output + notes


class Person:
    """Who asks, answers every question, and reads all there is to read."""

    def __init__(self, client: httpx.Client, model: OpenAIServer, evidence: Evidence) -> None:
        self._client, self._model, self._evidence = client, model, evidence

    def read(self, name: str, address: str, **headers: str) -> httpx.Response:
        answer = self._client.get(address, headers=headers)
        self._evidence.told[f"http {name}"] = answer.content + str(answer.headers).encode()
        return answer

    def ask(self, name: str, script: dict, **options: object) -> None:
        """Ask with every canary in the question; answer with all of them until the run has ended."""
        self._model.reset(script)
        body = {"messages": [{"role": "user", "content": ALL}], **options}
        text = self._client.post("/api/chat/stream", json=body).text
        run_id, thread_id = _first(text)["run_id"], _first(text)["thread_id"]
        for _ in range(10):
            run = self.read(f"run {name}", f"/api/runs/{run_id}").json()
            if run["status"] != "interrupted":
                break
            waiting = run["interrupts"][0]
            answer = {"answer": _answer(waiting), "interrupt_id": waiting["interrupt_id"]}
            accepted = self._client.post(f"/api/runs/{run_id}/resume", json=answer)
            text += self._client.get(accepted.headers["location"]).text
        self._evidence.streams[name] = text
        self._evidence.told[f"http stream {name}"] = text
        self.read(f"events {name}", f"/api/runs/{run_id}/events")
        self.read(f"thread {name}", f"/api/threads/{thread_id}")
        for form in ("text/markdown", "text/html", "application/json"):
            self.read(f"report {name} {form}", f"/api/runs/{run_id}/report", accept=form)


def _first(stream: str) -> dict:
    return json.loads(next(line[6:] for line in stream.splitlines() if line.startswith("data: ")))


def _answer(waiting: dict) -> object:
    match waiting["kind"]:
        case "plan_review":
            return "accept"
        case "tool_approval":
            command = f"echo {ALL.split()[0]}; echo {ALL.split()[1]} >&2"
            return {"type": "edit", "args": {"cmd": command}}
        case _:
            return ALL


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    home, gathered = tmp_path_factory.mktemp("canary"), Evidence()
    with open_site() as site, serving(talk.SMALL_TALK) as model:
        env = configured(model.base_url, site.url, home)
        with open_server(env, home) as server:
            with httpx.Client(base_url=server.url, timeout=60) as client:
                _say_everything(Person(client, model, gathered), site)
            gathered.keep_files("under way", home / "data")
        gathered.told["log"] = server.output
        gathered.keep_files("afterwards", home / "data")
        gathered.keep_files("cached", home / "cache")
        for number, (path, body) in enumerate(site.received):
            if path.endswith("/traces"):
                gathered.told[f"trace {number}"] = body
        for script in (talk.SMALL_TALK, talk.working(site.url), talk.failing(401)):
            model.reset(script)
            gathered.keep_output(["chat", ALL], env, home)
            model.reset(script)
            gathered.keep_output(["chat", "--json", ALL], env, home)
        for words in (
            ["db", "export"],
            ["db", "check"],
            ["doctor", "--no-build"],
            ["doctor", "--json", "--no-build"],
        ):
            gathered.keep_output(words, env, home)
    yield gathered


def _say_everything(person: Person, site: Site) -> None:
    person.ask("talk", talk.SMALL_TALK)
    person.ask("work", talk.working(site.url), auto_accepted_plan=False, search_before_planning=True)
    person.ask("deep", talk.working(site.url), deep_thinking_mode=True)
    person.ask("ids", talk.working(site.url, named=CANARIES["Vision"]))
    person.ask("plan", talk.BROKEN_PLAN)
    for status in (400, 401, 404, 429, 500):
        person.ask(f"http{status}", talk.failing(status))
    for path in (
        "healthz",
        "readyz",
        "metrics",
        "openapi.json",
        "api/threads",
        "api/team_members",
        "nowhere",
    ):
        person.read(path, f"/{path}")


def test_every_secret_setting_holds_a_canary(tmp_path):
    env = configured("http://127.0.0.1:9/v1", "http://127.0.0.1:9", tmp_path)
    settings = load_settings(tmp_path / "conf.yaml", environment=env)
    # The service of these tests has no bucket: see `test_the_secret_of_a_bucket_is_masked`.
    names = [name for name in secret_settings() if name != "artifacts.secret_access_key"]
    assert "models.basic.api_key" in names
    assert {name: value_at(settings, name) for name in names if not found_in(value_at(settings, name))} == {}
    spare = settings.models.basic.fallbacks[0].api_key  # type: ignore[union-attr]
    assert found_in(spare.get_secret_value()) == {"Spare"}  # type: ignore[union-attr]


def test_the_canaries_occur_in_the_inputs(evidence):
    work = evidence.streams["work"]
    for tool in ("crawl_tool", "tavily_search", "python_repl_tool", "bash_tool", "write_file"):
        assert f'"tool_name": "{tool}", "tool_result"' in work, tool
    for kind in ("plan_review", "tool_approval", "question"):
        assert f'"kind": "{kind}"' in work, kind
    assert '"status": "completed"' in work
    assert work.count("***") > 10 * len(CANARIES)
    assert "***" in evidence.streams["talk"]
    assert "call_***" in evidence.streams["ids"], "no id held a secret"
    assert "It says: ***" in work, "the page was not read"
    assert '"code": "model_auth"' in evidence.streams["http401"]


def test_the_evidence_contains_debug_lines_of_the_log(evidence):
    assert '"level": "debug"' in str(evidence.told["log"])


@pytest.mark.parametrize("kind", ["http", "log", "file", "command"])
def test_no_canary_leaves_the_process(evidence, kind):
    assert evidence.leaks(kind) == {}


def test_no_canary_is_in_a_trace(evidence):
    pytest.importorskip("opentelemetry.exporter")
    assert evidence.leaks("trace") == {}


def test_the_secret_of_a_bucket_is_masked(tmp_path):
    key = {"ARTIFACTS__ACCESS_KEY_ID": "somebody", "ARTIFACTS__SECRET_ACCESS_KEY": "Zq7x-of-the-bucket"}
    env = {f"MANIPLE_{name}": value for name, value in {**key, "ARTIFACTS__URL": "s3://bucket"}.items()}
    settings = load_settings(tmp_path / "conf.yaml", environment=env)
    assert "Zq7x" not in redactor_of(settings).text(f"It is {key['ARTIFACTS__SECRET_ACCESS_KEY']}.")
    assert "Zq7x" not in repr(settings)

"""Clients that generators make from the OpenAPI document, without a line by hand."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import openapi_python_client as generator
import pytest
from openapi_python_client.config import Config, ConfigFile, MetaType

from maniple.events import EVENT_TYPES
from tests.openai_server import SIMPLE, OpenAIServer, reply
from tests.serving import ServerProcess

PACKAGE = "generated_maniple"
BINARY: dict[str, str] = dict.fromkeys(("*/*", "application/zip", "image/gif"), "application/octet-stream")
# Put there by `setup.sh dev`.
TYPESCRIPT = Path(sys.prefix, "typescript/node_modules")
PROGRAM = Path(__file__).parent / "typescript/client.mts"
PROTOCOLS = ("ag-ui", "langgraph", "openai")


@pytest.fixture(scope="module")
def document(server: ServerProcess) -> Any:
    return httpx.get(f"{server.url}/openapi.json").raise_for_status().json()


@pytest.fixture(scope="module")
def package(document: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a function that imports a module of the generated package."""
    home = tmp_path_factory.mktemp("generated")
    source = home / "openapi.json"
    source.write_text(json.dumps(document), encoding="utf-8")
    asked = ConfigFile(content_type_overrides=BINARY, post_hooks=[])
    config = Config.from_sources(asked, MetaType.NONE, source, "utf-8", False, home / PACKAGE)
    assert generator.generate(config=config) == []
    sys.path.insert(0, str(home))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"{PACKAGE}{name}")

    yield load
    sys.path.remove(str(home))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def frames_in(stream: bytes, package: Any) -> list[tuple[Any, Any]]:
    """Return the frames of a stream and the data of each, as the generated classes read them."""
    models, found = package(".models"), []
    for block in filter(None, stream.decode().split("\n\n")):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            name = EVENT_TYPES[fields["event"]].__name__
            frame = getattr(models, f"{name}Frame").from_dict(fields)
            found.append((frame, getattr(models, name).from_dict(json.loads(frame.data))))
    return found


def test_a_run_is_reviewed_followed_resumed_and_cancelled(
    package: Any, server: ServerProcess, model: OpenAIServer
):
    model.reset(SIMPLE)
    models = package(".models")

    def call(name: str, *ids: str, **more: Any) -> Any:
        answer = package(f".api.{name}").sync_detailed(*ids, client=client, **more)
        assert not isinstance(answer.parsed, models.Problem)
        return answer

    with package(".client").Client(server.url, timeout=httpx.Timeout(60)) as client:
        thread = call("threads.make_thread", body=models.NewThread(title="Sums")).parsed.thread_id
        asked = models.RunBody(input_="1+3=?", auto_accepted_plan=False)
        run = call("threads.start_run", thread, body=asked).parsed.run_id
        waiting = frames_in(call("runs.follow_run", run).content, package)
        assert waiting[0][0].event == "run"
        view = call("runs.read_run", run).parsed
        assert (view.status, len(view.interrupts)) == ("interrupted", 1)
        resumed = call("runs.resume_run", run, body=models.Answer(answer="accept"))
        after = int(httpx.URL(resumed.headers["location"]).params["after"])
        rest = frames_in(call("runs.follow_run", run, after=after).content, package)
        assert [int(frame.id) for frame, _ in waiting + rest] == list(range(1, len(waiting + rest) + 1))
        assert "4" in rest[-1][1].messages[-1].content
        stored: list[Any] = []
        while (page := call("runs.read_events", run, after=len(stored), limit=7).parsed).events:
            assert (page.status, page.next_after) == ("completed", page.events[-1].number)
            stored += page.events
        assert [one.number for one in stored] == list(range(1, len(stored) + 1))
        assert {type(one.data).__name__ for one in stored} >= {"RunStarted", "PlanChanged", "SessionState"}
        assert stored[-1].data.messages[-1].content == rest[-1][1].messages[-1].content
        assert call("runs.read_run", run).parsed.status == "completed"

        model.reset({"coordinator": [reply("Hello!", hang=True)]})
        run = call("threads.start_run", thread, body=models.RunBody(input_="Hello")).parsed.run_id
        model.wait_for(lambda stats: stats["active"] == 1)
        assert call("runs.cancel_run", run).parsed.status == "cancelled"


@pytest.mark.slow
@pytest.mark.skipif(
    not (TYPESCRIPT / "typescript").is_dir() or shutil.which("node") is None,
    reason="setup.sh dev has not installed the generator",
)
def test_types_of_typescript_check_a_program_that_does_the_same(
    document: Any, server: ServerProcess, model: OpenAIServer, tmp_path: Path
):
    (tmp_path / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(TYPESCRIPT)
    shutil.copy(PROGRAM, tmp_path)

    def node(script: str, *arguments: str) -> str:
        command = ["node", script, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # Fields with a default may be left out of a body.
    generated = ("openapi.json", "-o", "schema.d.ts", "--default-non-nullable", "false")
    node("node_modules/openapi-typescript/bin/cli.js", *generated)
    strict = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom")
    node("node_modules/typescript/bin/tsc", *strict, PROGRAM.name)
    model.reset({**SIMPLE, "coordinator": [*SIMPLE["coordinator"], {"hang": True}]})
    found = json.loads(node("client.mjs", server.url))
    assert found["numbers"] == list(range(1, len(found["numbers"]) + 1))
    assert (found["asked"], {*found["reviewed"]}) == (["plan_review"], {"not_started"})
    assert {*found["steps"]} == {"completed"}
    assert "4" in found["answer"]
    assert found["statuses"] == {"waiting": "interrupted", "ended": "completed", "other": "cancelled"}


def test_each_event_of_the_wire_is_in_the_union_of_streams(document: Any):
    schemas = document["components"]["schemas"]
    for path, method in (("/api/chat/stream", "post"), ("/api/runs/{run_id}/events", "get")):
        content = document["paths"][path][method]["responses"]["200"]["content"]["text/event-stream"]
        assert content["itemSchema"] == {"$ref": "#/components/schemas/StreamFrame"}
    mapping = schemas["StreamFrame"]["discriminator"]["mapping"]
    assert mapping.keys() >= {
        name for name, one in EVENT_TYPES.items() if one.__module__ == "maniple.events.model"
    }
    for name, target in mapping.items():
        frame = schemas[target.rpartition("/")[2]]["properties"]
        assert frame["event"]["const"] == name
        assert {"$ref": frame["data"]["contentSchema"]["$ref"]} in schemas["EventData"]["anyOf"]


def test_the_operations_of_the_own_api_have_short_ids(document: Any):
    operations = [one for path in document["paths"].values() for one in path.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids))
    for one in operations:
        if not set(one["tags"]) & set(PROTOCOLS):
            assert len(one["operationId"]) <= 25
            assert "_api_" not in one["operationId"]

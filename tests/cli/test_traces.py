"""The terminal traces runs as the HTTP service does."""

import pytest

from tests.cli.processes import environment, run
from tests.openai_server import SIMPLE, serving
from tests.telemetry.collector import collecting

pytestmark = pytest.mark.anyio


async def test_a_question_in_the_terminal_is_traced(tmp_path):
    with serving(SIMPLE) as server, collecting() as collector:
        env = environment(tmp_path, server.base_url, MANIPLE_TELEMETRY__OTLP_ENDPOINT=collector.url)
        status, _, notes = await run("1+3=?", folder=tmp_path, env=env)
        names = {span.name for span in collector.spans()}
    assert status == 0, notes
    assert {"run", "invoke_agent coordinator", "invoke_agent reporter"} <= names

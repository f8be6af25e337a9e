"""The guide to MCP: the command that it gives to a host exists."""

import json
import re

from typer.testing import CliRunner

from maniple.cli.app import app
from maniple.config.mcp_settings import read_servers
from maniple.mcp_server.schemas import AskTeam, CancelRun, GetRun, MakePlan
from tests.serving import ROOT

GUIDE = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")


def test_the_hosts_json_starts_a_command_that_exists():
    shown = [json.loads(one) for one in re.findall(r"^```json\n(.*?)^```", GUIDE, re.S | re.M)]
    started = [one for one in shown if "inputs" not in one]
    assert len(started) == 2
    for one in started:
        (server,) = read_servers(one).values()
        *command, config, _ = server["args"]
        assert server["command"].endswith("/bin/maniple")
        told = CliRunner().invoke(app, [*command, "--help"]).stdout
        assert config in told


def test_the_tools_and_their_arguments_are_those_that_there_are():
    for name, takes in (
        ("ask_team", AskTeam),
        ("plan", MakePlan),
        ("get_run", GetRun),
        ("cancel_run", CancelRun),
    ):
        optional = {key: "" if field.is_required() else "?" for key, field in takes.model_fields.items()}
        assert f"`{name}({', '.join(f'{key}{mark}' for key, mark in optional.items())})`" in GUIDE

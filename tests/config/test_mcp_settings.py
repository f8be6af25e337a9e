"""MCP servers as people write them down, here and for other programs."""

import json

import pytest

from maniple.config import McpSettings, Settings, load_settings
from maniple.config.mcp_settings import reveal_text
from maniple.config.secrets import redactor_of
from maniple.errors import ConfigError

CLAUDE = {
    "mcpServers": {
        "time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}, "autoApprove": []},
        "remote": {"type": "http", "url": "https://example.org/mcp", "headers": {"X-Api-Key": "0123456789"}},
        "older": {"url": "https://example.org/sse", "disabled": True},
    }
}


def loaded(tmp_path, conf="", dotenv="", environment=None):
    (tmp_path / "conf.yaml").write_text(conf, encoding="utf-8")
    (tmp_path / ".env").write_text(dotenv, encoding="utf-8")
    return load_settings(tmp_path / "conf.yaml", env_file=tmp_path / ".env", environment=environment or {})


@pytest.mark.parametrize("place", ["top", "mcp.servers", "mcp.mcpServers in servers", "file"])
def test_the_common_shape_is_taken_as_it_is(tmp_path, place):
    conf = {
        "top": CLAUDE,
        "mcp.servers": {"mcp": {"servers": CLAUDE["mcpServers"]}},
        "mcp.mcpServers in servers": {"mcp": {"servers": CLAUDE}},
        "file": {"mcp": {"servers": str(tmp_path / "mcp.json")}},
    }[place]
    (tmp_path / "mcp.json").write_text(json.dumps(CLAUDE), encoding="utf-8")
    servers = loaded(tmp_path, json.dumps(conf)).mcp.servers
    assert {name: one.transport for name, one in servers.items()} == {
        "time": "stdio",
        "remote": "http",
        "older": "sse",
    }
    assert servers["time"].args == ("mcp-server-time",)
    assert servers["older"].disabled


def test_a_file_of_servers_can_be_named_in_the_environment(tmp_path):
    (tmp_path / "mcp.json").write_text(json.dumps(CLAUDE), encoding="utf-8")
    file = {"MANIPLE_MCP__SERVERS": str(tmp_path / "mcp.json")}
    assert "time" in loaded(tmp_path, environment=file).mcp.servers


def test_variables_are_filled_from_the_environment_and_dotenv_and_are_secrets_then(tmp_path):
    conf = """
mcpServers:
  one: {url: "https://example.org/${PLACE}/mcp", headers: {Authorization: "Bearer ${TOKEN}"}}
  two: {command: run, args: ["${TOKEN}"], env: {LEVEL: "${LEVEL:-info}", KEY: "${env:TOKEN}"}}
  idle: {command: run, env: {KEY: "${NOBODY}"}, disabled: true}
"""
    settings = loaded(tmp_path, conf, "TOKEN=from-dotenv\nPLACE=secret-place", {"TOKEN": "from-environment"})
    one, two = settings.mcp.servers["one"], settings.mcp.servers["two"]
    assert reveal_text(one.url) == "https://example.org/secret-place/mcp"
    assert reveal_text(one.headers["Authorization"]) == "Bearer from-environment"
    assert [reveal_text(two.env["LEVEL"]), reveal_text(two.env["KEY"]), reveal_text(two.args[0])] == [
        "info",
        "from-environment",
        "from-environment",
    ]
    words = redactor_of(settings).text("https://example.org/secret-place/mcp: Bearer from-environment")
    assert words == "***: ***"
    assert "from-environment" not in repr(settings)


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        (
            "mcpServers: {a: {command: x, env: {K: '${NOT_THERE}'}}}",
            r"\${NOT_THERE} is not set",
        ),
        ("mcpServers: {a: {}}", "either command or url"),
        ("mcpServers: {a: {command: x, url: 'http://h/'}}", "either command or url"),
        ("mcpServers: {a: {url: h/mcp}}", "https://host/mcp"),
        ("mcpServers: {a: {command: x, type: http}}", "type http"),
        ("mcpServers: {a: {command: x, sandbox: false}}", "write unsafe"),
        ("mcpServers: {a b: {command: x}, a_b: {command: x}}", "the same names"),
        ("mcp: {servers: nowhere.json}", "nowhere.json cannot be read"),
        ("mcp: {workers: {coder: [time]}}", "names 'time'"),
        ("runs: {approval: [git__push]}", "git__push"),
    ],
)
def test_a_mistaken_server_setting_is_an_error_that_names_it(tmp_path, conf, words):
    with pytest.raises(ConfigError, match=words):
        loaded(tmp_path, conf)


def test_tools_of_servers_can_be_put_under_approval(tmp_path):
    conf = "mcpServers: {my git: {command: x}}\nruns: {approval: [bash_tool, my_git__push]}"
    assert loaded(tmp_path, conf).runs.approval == ("bash_tool", "my_git__push")


def test_by_default_the_researcher_gets_all_servers():
    servers = {"a": {"command": "x"}, "b": {"command": "x"}}
    settings = McpSettings.model_validate({"servers": servers})
    assert (settings.servers_of("researcher"), settings.servers_of("coder")) == (("a", "b"), ())
    settings = McpSettings.model_validate({"servers": servers, "workers": {"coder": ["b"]}})
    assert (settings.servers_of("researcher"), settings.servers_of("coder")) == ((), ("b",))


def test_nothing_is_configured_by_default():
    assert Settings().mcp.servers == {}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("aproval", "approval"),
        ("sanbox", "sandbox"),
        ("header", "headers"),
        ("allowHosts", "allow_hosts"),
        ("timeoutSeconds", "timeout_seconds"),
        ("Env", "env"),
        ("disable", "disabled"),
    ],
)
def test_a_key_with_a_slip_is_reported(tmp_path, key, meant):
    conf = json.dumps(
        {"mcpServers": {"gh": {"url": "https://x.test/mcp", key: {"Authorization": "t0ps3cret"}}}}
    )
    settings = loaded(tmp_path, conf)
    assert settings.notices == (
        f"mcp.servers.gh.{key} has no effect: there is no such key. Did you mean {meant}?",
    )
    assert "t0ps3cret" not in repr(settings)


def test_the_keys_of_other_programs_are_let_through_in_silence(tmp_path):
    others = (
        "alwaysAllow autoApprove description disabledTools enabled envFile excludeTools icon includeTools "
        "initTimeout isActive isDisabled name timeout transportType trust version transport"
    )
    server = {"serverUrl": "https://x.test/mcp", **dict.fromkeys(others.split(), "http")}
    assert loaded(tmp_path, json.dumps({"mcpServers": {"gh": server}})).notices == ()


def test_a_mistake_is_reported_for_servers_of_the_environment_too(tmp_path):
    conf = json.dumps({"mcpServers": {"gh": {"url": "${PLACE}", "aproval": True}}})
    settings = loaded(tmp_path, conf, environment={"PLACE": "https://x.test/mcp"})
    assert "Did you mean approval?" in settings.notices[0]


def test_numbers_among_the_arguments_are_taken_as_they_are_written(tmp_path):
    conf = json.dumps({"mcpServers": {"a": {"command": "serve", "args": ["--port", 8080, 0.5, True]}}})
    assert loaded(tmp_path, conf).mcp.servers["a"].args == ("--port", "8080", "0.5", "true")

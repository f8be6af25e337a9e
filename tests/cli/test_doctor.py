import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from maniple.cli.doctor import checks, examine, model_checks
from maniple.cli.doctor.checks import CheckResult
from maniple.cli.doctor.model_checks import check_capabilities
from maniple.config import ModelSettings, Settings
from maniple.config.settings import (
    BrowserSettings,
    EmbeddedSettings,
    ModelsSettings,
    SandboxSettings,
    SearchSettings,
)
from maniple.llms import model_listing
from maniple.llms.capabilities import CapabilityCache
from maniple.llms.embedded import SilentProgress
from maniple.shared_texts import TextFolder
from tests.egress.proxy_servers import ProxyVariables, open_proxy_server
from tests.openai_server import SIMPLE, OpenAIServer, serving

pytestmark = pytest.mark.anyio
KEY = "sk-canary-0123456789"
BASIC = model_checks.EndpointSetting("models.basic", "BASIC")
SPARE = model_checks.EndpointSetting("models.basic.fallbacks[0]", "", is_required=False)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as running:
        yield running


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[str]:
    """A server that answers every request with `reply`, or with nothing at all."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        if not reply:
            await reader.read()  # until the client gives up
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def settings_in(folder: Path, **sections: Any) -> Settings:
    return Settings(data_dir=folder / "data", cache_dir=folder / "cache", **sections)


def model_at(url: str, name: str = "scripted") -> ModelSettings:
    return ModelSettings(model=name, base_url=url, api_key=SecretStr(KEY))


async def test_an_endpoint_that_lists_the_model_is_reachable(server: OpenAIServer) -> None:
    finding = await model_checks.check_endpoint(model_at(server.base_url), BASIC)
    detail = f"model 'scripted' at {server.base_url} is reachable"
    assert finding == CheckResult("models.basic", "ok", detail)


async def test_what_real_calls_have_shown_of_an_endpoint_is_listed(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, models=ModelsSettings(basic=model_at("http://127.0.0.1:9/v1")))
    cache = CapabilityCache(TextFolder(settings.cache_dir))
    assert model_checks.show_learned(settings, cache) == []
    await cache.store("http://127.0.0.1:9/v1", "scripted", {"temperature": False, "reasoning_content": True})
    [finding] = model_checks.show_learned(settings, model_checks.read_capabilities(settings))
    assert (finding.name, finding.status) == ("models.basic", "ok")
    assert finding.detail.endswith("temperature: no, reasoning_content: yes")


async def test_a_model_that_the_endpoint_does_not_list_is_a_warning(server: OpenAIServer) -> None:
    finding = await model_checks.check_endpoint(model_at(server.base_url, "gpt-5"), BASIC)
    assert finding.status == "warning"
    assert finding.detail.endswith("It lists: scripted")
    assert finding.remedy == "Check BASIC_MODEL."


async def test_an_endpoint_without_a_list_of_models_is_reachable(server: OpenAIServer) -> None:
    finding = await model_checks.check_endpoint(model_at(f"{server.base_url}/elsewhere"), BASIC)
    assert finding.status == "ok"
    assert "is reachable" in finding.detail


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (
            b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n",
            "problem",
            "rejects the API key",
        ),
        (b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", "warning", "returned HTTP 503"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", "ok", "it does not list its models"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{", "problem", "not valid HTTP"),
        (b"hello\r\n", "problem", "not valid HTTP"),
        (b"", "problem", "unreachable: no answer in 0 s"),
    ],
)
async def test_the_meaning_of_each_response_is_reported(
    monkeypatch: pytest.MonkeyPatch, reply: bytes, status: str, words: str
) -> None:
    if not reply:
        for module in (model_checks, model_listing):
            monkeypatch.setattr(module, "LISTING_SECONDS", 0.3)
    async with answering(reply) as url:
        finding = await model_checks.check_endpoint(model_at(url), BASIC)
    assert finding.status == status
    assert words in finding.detail


@pytest.mark.parametrize(
    ("place", "status", "setting"),
    [
        (BASIC, "problem", "BASIC_BASE_URL"),
        (SPARE, "warning", "models.basic.fallbacks[0].base_url"),
    ],
)
async def test_an_unreachable_endpoint_is_a_problem_only_where_nothing_else_answers(
    place: model_checks.EndpointSetting, status: str, setting: str, free_tcp_port: int
) -> None:
    finding = await model_checks.check_endpoint(model_at(f"http://127.0.0.1:{free_tcp_port}/v1"), place)
    assert finding.status == status
    assert finding.detail.endswith("is unreachable: no connection")
    assert finding.remedy.startswith(f"Check {setting}, the network")


async def test_the_remedies_of_a_spare_name_its_own_settings_and_no_variable(server: OpenAIServer) -> None:
    basic = model_at(server.base_url).model_copy(update={"fallbacks": (model_at(server.base_url, "gpt-5"),)})
    _, spare = await model_checks.check_endpoints(Settings(models=ModelsSettings(basic=basic)))
    assert (spare.status, spare.remedy) == ("warning", "Check models.basic.fallbacks[0].model.")


async def test_an_unreachable_endpoint_is_reported_without_passwords() -> None:
    finding = await model_checks.check_endpoint(model_at("http://me:hidden@127.0.0.1:1/v1"), BASIC)
    assert (finding.status, "hidden" in f"{finding}") == ("problem", False)


async def test_an_invalid_key_is_reported_and_not_shown(server: OpenAIServer) -> None:
    endpoint = model_at(server.base_url).model_copy(update={"api_key": SecretStr("schlüssel")})
    finding = await model_checks.check_endpoint(endpoint, BASIC)
    assert "characters" in finding.detail
    assert "schl" not in f"{finding}"


def test_the_first_configured_type_answers_and_its_spare_makes_it_less_than_vital() -> None:
    spare = model_at("http://b.example/v1")
    basic = model_at("http://a.example/v1").model_copy(update={"fallbacks": (spare,)})
    models = ModelsSettings(basic=basic, vision=model_at("http://c.example/v1"))
    places = [place for _, place in model_checks._endpoints(Settings(models=models))]
    assert [(place.setting, place.is_required) for place in places] == [
        ("models.basic", False),
        ("models.basic.fallbacks[0]", False),
        ("models.vision", False),
    ]


def test_the_embedded_model_is_a_problem_only_when_it_is_needed_and_cannot_be_had(tmp_path: Path) -> None:
    absent = settings_in(tmp_path)
    assert checks.check_model_file(absent, needed=False).status == "ok"
    to_fetch = checks.check_model_file(absent, needed=True)
    assert (to_fetch.status, "1.1 GB" in to_fetch.detail) == ("warning", True)

    wrong = settings_in(tmp_path, embedded=EmbeddedSettings(model_file=tmp_path / "none.gguf"))
    assert checks.check_model_file(wrong, needed=True).status == "problem"
    (tmp_path / "none.gguf").touch()
    assert checks.check_model_file(wrong, needed=True).status == "ok"


def test_a_missing_engine_names_a_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert checks.check_engine(needed=False).status == "ok"
    finding = checks.check_engine(needed=True)
    assert finding.status == "problem"
    assert ".venv/bin/python -m pip install -e '.[local]'" in finding.remedy
    assert "BASIC_API_KEY" in finding.remedy


def test_the_env_file_beside_the_settings_file_is_read_and_named(tmp_path: Path) -> None:
    file, beside = tmp_path / "conf.yaml", tmp_path / ".env"
    beside.write_text("MANIPLE_SERVER__PORT=9000\n")
    finding, settings = checks.check_settings(file)
    assert settings is not None
    assert settings.server.port == 9000
    assert finding.detail.startswith(f"read from {beside};")


def test_an_unknown_tool_under_approval_is_a_problem_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("runs:\n  approval: [bash_tol]\n")
    finding, settings = checks.check_settings(file)
    assert (finding.status, settings) == ("problem", None)
    assert "line 2: runs.approval.0: " in finding.detail and "bash_tool" in finding.detail


async def test_a_sandbox_that_is_off_is_a_warning_with_its_remedy(tmp_path: Path) -> None:
    finding = await checks.check_sandbox(settings_in(tmp_path, sandbox=SandboxSettings(backend="off")))
    assert finding.status == "warning"
    assert "sandbox.backend" in finding.remedy


async def test_the_real_sandbox_withstands_its_probes(tmp_path: Path) -> None:
    finding = await checks.check_sandbox(settings_in(tmp_path))
    assert finding.status == "ok", finding


async def test_a_search_that_cannot_be_reached_is_a_warning(
    tmp_path: Path, free_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ProxyVariables(monkeypatch)
    search = SearchSettings(providers=("searxng",), searxng_url=f"http://127.0.0.1:{free_tcp_port}")
    finding = await checks.check_search(settings_in(tmp_path, search=search))
    assert finding.status == "warning"
    assert finding.detail.startswith("searxng") and "search.providers" in finding.remedy


async def test_the_check_names_the_providers_and_the_missing_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is beyond a proxy is not asked.
    variables = ProxyVariables(monkeypatch)

    async def said(**search: Any) -> CheckResult:
        async with open_proxy_server("http", {}) as proxy:
            variables.set(HTTPS_PROXY=proxy.url)
            return await checks.check_search(settings_in(tmp_path, search=SearchSettings(**search)))

    assert await said() == CheckResult("web search", "ok", "ddgs, then wikipedia")
    with_key = await said(tavily_api_key=SecretStr(KEY), mode="merged")
    assert with_key == CheckResult("web search", "ok", "tavily and ddgs and wikipedia")
    half = await said(providers=("brave", "ddgs"))
    assert (half.status, half.detail) == ("warning", "ddgs; not configured: brave")
    assert half.remedy == "Set BRAVE_API_KEY, or remove brave."
    nobody = await said(providers=("tavily",))
    assert (nobody.status, nobody.remedy) == ("warning", "set TAVILY_API_KEY.")
    assert "search.providers" in (await said(providers=())).remedy
    lost = await said(folder=tmp_path / "lost")
    assert (lost.status, lost.detail) == ("warning", f"{tmp_path / 'lost'} does not exist")


async def test_a_search_behind_a_dead_proxy_names_the_variable(
    tmp_path: Path, free_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"127.0.0.1:{free_tcp_port}"
    ProxyVariables(monkeypatch).set(ALL_PROXY=f"socks5://name:s3cret@{place}")
    finding = await checks.check_search(settings_in(tmp_path))
    assert finding.status == "warning" and f"ALL_PROXY ({place})" in finding.remedy
    assert "s3cret" not in f"{finding}"


async def test_a_proxy_address_that_cannot_be_used_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    ProxyVariables(monkeypatch).set(HTTPS_PROXY="gopher://name:s3cret@127.0.0.1")
    found = await model_checks.check_endpoint(model_at("https://model.test/v1"), BASIC)
    assert found.status == "problem" and "HTTPS_PROXY" in found.detail
    assert "s3cret" not in f"{found}"


async def test_a_chromium_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    absent = settings_in(tmp_path, browser=BrowserSettings(executable=tmp_path / "chromium"))
    assert (await checks.check_browser(absent)).status == "warning"
    turned_off = settings_in(tmp_path, browser=BrowserSettings(enabled=False))
    assert (await checks.check_browser(turned_off)).status == "ok"


@pytest.mark.parametrize(
    ("own", "status", "says"),
    [
        ({"backend": "cdp"}, "warning", "browser.cdp_url"),
        ({"backend": "sandbox"}, "warning", "browser.sandbox_url"),
        ({"backend": "cdp", "cdp_url": "nonsense"}, "problem", "browser.cdp_url"),
        ({"backend": "cdp", "cdp_url": "ws://localhost:9?key=s3cret"}, "warning", "private addresses"),
        ({"backend": "sandbox", "sandbox_url": "http://localhost:9"}, "warning", "private addresses"),
    ],
)
async def test_a_remote_browser_reports_what_it_lacks_and_can_reach(
    tmp_path: Path, own: dict[str, str], status: str, says: str
) -> None:
    settings = settings_in(tmp_path, browser=BrowserSettings.model_validate(own))
    finding = await checks.check_browser(settings)
    assert finding.status == status
    assert says in f"{finding.detail} {finding.remedy}"
    assert "s3cret" not in finding.detail


def test_folders_are_looked_at_before_they_exist(tmp_path: Path) -> None:
    findings = checks.check_folders(settings_in(tmp_path))
    assert [finding.name for finding in findings] == ["data_dir", "cache_dir"]
    assert all(finding.detail.startswith(str(tmp_path)) for finding in findings)
    assert all(finding.status != "problem" for finding in findings)
    assert not list(tmp_path.iterdir())


async def test_the_doctor_reports_that_the_team_needs_its_data_folder(
    server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written_settings(tmp_path, server.base_url)
    (tmp_path / "data").touch()
    assert await examine(file, as_json=False) == 1
    printed = capsys.readouterr().out
    assert f"✘ data_dir         {tmp_path / 'data'} cannot be created" in printed
    assert "The team cannot answer" in printed.splitlines()[-1]


async def test_a_mistyped_variable_is_a_warning(
    server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_text("TAVILY_API_KYE=x\n")
    assert await examine(written_settings(tmp_path, server.base_url), as_json=True) == 0
    warned = json.loads(capsys.readouterr().out)["checks"][2]
    assert (warned["name"], warned["status"]) == ("settings", "warning")
    assert warned["detail"].endswith(
        "TAVILY_API_KYE is not read: there is no such variable. Did you mean TAVILY_API_KEY?"
    )


async def test_the_doctors_json_reports_that_the_team_can_answer_without_secrets(
    server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = await examine(written_settings(tmp_path, server.base_url), as_json=True)
    printed = capsys.readouterr().out
    report = json.loads(printed)

    assert (status, report["ok"]) == (0, True)
    names = [check["name"] for check in report["checks"]]
    assert names[:3] == ["Python", "settings", "models.basic"]
    assert names[-4:] == ["reading pages", "web page", "data_dir", "cache_dir"]
    assert KEY not in printed


async def test_the_doctor_reports_that_the_team_cannot_answer_and_the_remedy(
    free_tcp_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{free_tcp_port}/v1"
    status = await examine(written_settings(tmp_path, url), as_json=False)
    printed = capsys.readouterr().out

    assert status == 1
    assert f"✘ models.basic     model 'scripted' at {url} is unreachable: no connection" in printed
    assert "→ Check BASIC_BASE_URL, the network" in printed
    assert "The team cannot answer" in printed.splitlines()[-1]


async def test_wrong_settings_are_reported_with_their_line_and_nothing_else_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("search:\n  tavily_key: x\n")
    assert await examine(file, as_json=True) == 1

    report = json.loads(capsys.readouterr().out)
    assert [check["name"] for check in report["checks"]] == ["Python", "settings"]
    assert "line 2" in report["checks"][1]["detail"]


def written_settings(folder: Path, url: str) -> Path:
    """A settings file with an endpoint, in a folder of its own."""
    file = folder / "conf.yaml"
    file.write_text(
        f"models:\n  basic:\n    model: scripted\n    base_url: {url}\n    api_key: {KEY}\n"
        f"data_dir: {folder}/data\ncache_dir: {folder}/cache\n"
    )
    return file


async def test_probing_reports_what_each_model_can_do_and_what_happens_without(tmp_path: Path) -> None:
    script = {"other": [{"text": "I am a teapot."}], "reject": ["response_format"]}
    with serving(script) as server:
        settings = settings_in(tmp_path, models=ModelsSettings(basic=model_at(server.base_url)))
        findings = {one.name: one for one in await check_capabilities(settings, SilentProgress())}
    assert findings["models.basic: stream_usage"].status == "ok"
    assert "made no use" in findings["models.basic: tools"].detail
    assert findings["models.basic: json_schema"].status == "warning"


async def test_an_endpoint_behind_a_dead_proxy_names_the_variable_without_its_password(monkeypatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://name:word@127.0.0.1:9")
    found = await model_checks.check_endpoint(model_at("https://model.test/v1"), BASIC)
    assert "HTTPS_PROXY (127.0.0.1:9)" in found.remedy
    assert "word" not in f"{found}"


def test_the_sources_of_papers_are_named_and_nothing_without_them(tmp_path: Path) -> None:
    search = SearchSettings(papers=("arxiv", "pubmed", "brave"))
    assert checks.check_papers(settings_in(tmp_path, search=search)) == [
        CheckResult("paper search", "ok", "arxiv and pubmed")
    ]
    assert checks.check_papers(settings_in(tmp_path, search=SearchSettings(papers=()))) == []

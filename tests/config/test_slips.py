"""Slips that would pass in silence or end in a traceback: YAML's traps, names nearly ours, useless values."""

import pytest

from maniple.config import ServerSettings, Settings, load_settings
from maniple.errors import ConfigError


@pytest.fixture
def load(tmp_path):
    def load(yaml: str = "", env_file: str = "", **environment: str) -> Settings:
        (tmp_path / "conf.yaml").write_text(yaml, encoding="utf-8")
        (tmp_path / ".env").write_text(env_file, encoding="utf-8")
        paths = {"env_file": tmp_path / ".env", "environment": environment}
        return load_settings(tmp_path / "conf.yaml", **paths)

    return load


def refusal(load, *files: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(*files, **environment)
    return str(caught.value)


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        (
            "server: {}\ndata_dir: ~nosuch/x",
            "conf.yaml, line 2: data_dir: there is no home directory for the ~",
        ),
        ("models: &a\n  basic: *a", "conf.yaml, line 2: models.basic: this holds itself by an alias"),
        (
            "models:\n  basic: &b\n    a: {fallbacks: *b}",
            "line 3: models.basic.a.fallbacks: this holds itself",
        ),
        (
            "server:\n  port: 1\n  host: a\n  port: 2",
            "conf.yaml, line 4: server.port: this key stands already in line 2",
        ),
        (
            "server: {}\nmodels: {}\nserver: {}",
            "conf.yaml, line 3: server: this key stands already in line 1",
        ),
        ("team: {members: [{a: 1, a: 2}]}", "line 1: team.members.0.a: this key stands already"),
        ("[" * 3000, "conf.yaml: this is nested too deeply"),
        ("server: {}\n1: x", "conf.yaml, line 2: a key must be a word"),
        ("? [a]\n: b", "conf.yaml, line 1: a key must be a word"),
        (
            "models:\n  basic: {api_version: 2024-13-45}",
            "line 2, column 24: this is not valid YAML: a value that",
        ),
    ],
)
def test_yaml_that_cannot_be_meant_is_named_with_its_line_and_key(load, yaml, words):
    assert words in refusal(load, yaml)


def test_a_value_that_cannot_be_read_is_not_repeated(load):
    assert "canary" not in refusal(load, "models: {basic: {api_key: !!int 'sk-canary'}}")


def test_anchors_that_multiply_without_end_are_refused_at_once(load):
    levels = [f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "make more than 10000 keys" in refusal(load, "\n".join(["k0: &k0 [1]", *levels]))


def test_anchors_used_with_sense_are_welcome(load):
    yaml = (
        "models:\n  basic: &b {model: m, base_url: http://x}\n  vision: {<<: *b, model: v}\n  reasoning: *b"
    )
    models = load(yaml).models
    assert (models.vision.base_url, models.vision.model, models.reasoning.model) == ("http://x", "v", "m")


def test_an_api_version_without_quotes_is_the_text_that_was_meant(load):
    basic = "models: {basic: {model: m, provider: azure, base_url: https://x, api_version: %s}}"
    assert load(basic % "2024-10-21").models.basic.api_version == "2024-10-21"
    assert load(basic % "2024-10-21-preview").models.basic.api_version == "2024-10-21-preview"


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_the_first_name(load):
    settings = load("\ufeffserver: {port: 7}", "\ufeffBASIC_MODEL=m")
    assert (settings.server.port, settings.models.basic.model) == (7, "m")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BASIC_APIKEY", "BASIC_API_KEY"),
        ("BASIC_MODLE", "BASIC_MODEL"),
        ("BASIC_URL", "BASIC_BASE_URL"),
        ("basic_api_key", "BASIC_API_KEY"),
        ("BASCI_API_KEY", "BASIC_API_KEY"),
        ("TAVILY_KEY", "TAVILY_API_KEY"),
        ("VL_KEY", "VL_API_KEY"),
        ("CHROME_PROXY", "CHROME_PROXY_SERVER"),
        ("maniple_server__port", "MANIPLE_SERVER__PORT"),
        ("MANIPEL_SERVER__PORT", "MANIPLE_SERVER__PORT"),
    ],
)
def test_a_name_that_is_nearly_ours_is_reported_with_the_one_that_was_meant(load, name, meant):
    (notice,) = load("", f"\n# a comment\n{name}=sk-canary").notices
    assert f".env, line 3: {name} is not read" in notice
    assert notice.endswith(f"Did you mean {meant}?")
    assert "canary" not in notice
    assert load(**{name: "x"}).notices == (
        f"environment variable {name} is not read: there is no such variable. Did you mean {meant}?",
    )


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "GEMINI_API_KEY", "JIRA_API_KEY", "VLLM_API_KEY", "XAI_API_KEY", "DATABASE_URL"),
        *(
            "CHROME_PATH",
            "CHROME_BIN",
            "CHROME_DEVEL_SANDBOX",
            "BROWSER",
            "BASIC_AUTH_USER",
            "BASIC_AUTH_PASSWORD",
        ),
        *("REASONING_EFFORT", "REASONING_MAX_TOKENS", "TAVILY_PROJECT", "AZURE_API_VERSION", "HOME"),
        "BASIC_AZURE_DEPLOYMENT",
    ],
)
def test_a_strangers_variable_is_let_through_in_silence(load, name):
    assert load("", f"{name}=x", **{name: "x"}).notices == ()


def test_a_nearly_right_name_without_a_value_is_not_worth_a_word(load):
    assert load("", "BASIC_APIKEY=").notices == ()


@pytest.mark.parametrize("name", ["MANIPLE_SERVRE__PORT", "MANIPLE_SERVER_PORT", "MANIPLE_SERVER__PROT"])
def test_an_unknown_name_with_our_prefix_is_refused_where_it_is_written(load, name):
    words = refusal(load, "server: {port: 1}", f"\n{name}=1")
    assert f".env, line 2 ({name}): " in words
    assert "did you mean MANIPLE_SERVER__PORT?" in words
    assert f"environment variable {name}: " in refusal(load, **{name: "1"})


@pytest.mark.parametrize(
    ("name", "key", "character"),
    [
        (
            "BASIC_API_KEY",
            "“sk-canary-0123”",
            "character 1 of this key is LEFT DOUBLE QUOTATION MARK (U+201C)",
        ),
        ("VL_API_KEY", "sk-canаry-0123", "CYRILLIC SMALL LETTER A (U+0430)"),
        ("TAVILY_API_KEY", '"sk-can\nary-0123"', "a control character (U+000A)"),
        ("JINA_API_KEY", "sk-canary…", "HORIZONTAL ELLIPSIS (U+2026)"),
    ],
)
def test_a_key_that_cannot_be_sent_is_refused_by_its_name_and_never_shown(load, name, key, character):
    words = refusal(load, "", f"VL_MODEL=m\n{name}={key}")
    assert f".env, line 2 ({name}): " in words
    assert character in words
    assert not any(part in words for part in ("canary", "sk-", "0123"))


def test_a_password_may_have_any_characters(load):
    settings = load("", "CHROME_PROXY_PASSWORD=pässwort")
    assert settings.browser.proxy_password.get_secret_value() == "pässwort"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(
            (host, True)
            for host in ("127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "localhost", "LOCALHOST")
        ),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example.org", "")),
    ],
)
def test_every_address_of_this_machine_alone_is_loopback(host, expected):
    assert ServerSettings(host=host).is_loopback is expected


@pytest.mark.parametrize(
    ("end", "left_out"),
    [
        ("/v1/chat/completions", "/chat/completions"),
        ("/v1/Chat/Completions/?x=1", "/chat/completions"),
        ("/v1/completions", "/completions"),
    ],
)
def test_the_address_of_a_method_is_refused_with_what_to_leave_out(load, end, left_out):
    words = refusal(load, BASIC_MODEL="m", BASIC_BASE_URL=f"https://me:hidden@x{end}")
    assert f"models.basic.base_url: leave out {left_out} at its end" in words
    assert "hidden" not in words


def test_blanks_around_an_address_are_not_part_of_it(load):
    models = load(BASIC_MODEL="m", BASIC_BASE_URL=" https://x/v1\t").models
    assert models.basic.base_url == "https://x/v1"
    assert load(BASIC_MODEL="m", BASIC_BASE_URL="  ").models.basic.base_url is None

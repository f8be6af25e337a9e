"""Settings from files and the environment, and their errors."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from maniple.config import Settings, load_settings
from maniple.config.sources import ALIASES
from maniple.errors import ConfigError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def load(tmp_path):
    def load(yaml: str = "", env_file: str = "", **environment: str) -> Settings:
        (tmp_path / "conf.yaml").write_text(yaml, encoding="utf-8")
        (tmp_path / ".env").write_text(env_file, encoding="utf-8")
        paths = {"env_file": tmp_path / ".env", "environment": environment}
        return load_settings(tmp_path / "conf.yaml", **paths)

    return load


def test_nothing_at_all_is_a_valid_configuration(load, tmp_path):
    assert load() == load_settings(tmp_path / "no.yaml", env_file=tmp_path / "no.env", environment={})
    assert load().models.basic is None


def test_the_environment_wins_over_the_env_file_and_that_over_yaml(load):
    yaml = "server: {port: 1, host: a}\nmodels: {basic: {model: a, base_url: http://y, temperature: 0.5}}"
    env_file = "MANIPLE_SERVER__PORT=2\nBASIC_MODEL=b"
    settings = load(yaml, env_file, BASIC_MODEL="c")
    assert (settings.server.port, settings.server.host) == (2, "a")
    assert settings.models.basic.model == "c"
    assert (settings.models.basic.base_url, settings.models.basic.temperature) == ("http://y", 0.5)


def test_the_variables_of_langmanus_set_the_same_settings(load):
    settings = load(
        "",
        "BASIC_MODEL=b\nBASIC_API_KEY=k1\nREASONING_MODEL=r\nREASONING_BASE_URL=http://r\nVL_MODEL=v\n"
        "TAVILY_API_KEY=t\nJINA_API_KEY=j\nCHROME_INSTANCE_PATH=/c\nCHROME_HEADLESS=False\nCHROME_PROXY_SERVER=p",
    )
    assert settings.models.basic.api_key.get_secret_value() == "k1"
    assert (settings.models.reasoning.base_url, settings.models.vision.model) == ("http://r", "v")
    assert settings.search.tavily_api_key.get_secret_value() == "t"
    assert settings.fetch.jina_api_key.get_secret_value() == "j"
    assert (settings.browser.executable, settings.browser.headless) == (Path("/c"), False)
    assert settings.browser.proxy_server == "p"


def test_empty_values_mean_not_set(load):
    env_file = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert load("", env_file) == load()


def test_a_key_alone_means_openais_usual_model(load):
    assert load("", "BASIC_API_KEY=k").models.basic.model == "gpt-4o"


@pytest.mark.parametrize(
    ("yaml", "env_file", "words"),
    [
        ("a: [", "", "conf.yaml, line 1, column 5: this is not valid YAML"),
        ("- a", "", "conf.yaml, line 1: the file must hold keys"),
        (
            "server:\n  prt: 1",
            "",
            "conf.yaml, line 2: server.prt: there is no such key; did you mean 'port'?",
        ),
        ("sever: {}", "", "conf.yaml, line 1: sever: there is no such key; did you mean 'server'?"),
        ("server:\n  port: eighty", "", "conf.yaml, line 2: server.port: Input should be a valid integer"),
        (
            "team:\n  members:\n    - coder\n    - chef",
            "",
            "conf.yaml, line 4: team.members.1: Input should be",
        ),
        (
            "",
            "\n\nMANIPLE_SERVER__PORT=x",
            ".env, line 3 (MANIPLE_SERVER__PORT): server.port: Input should be",
        ),
        (
            "",
            "BASIC_BASE_URL=http://x",
            ".env, line 1 (BASIC_BASE_URL): models.basic: a model name is missing",
        ),
        (
            "",
            "BASIC_MODEL=m\nBASIC_BASE_URL=http://x:port",
            ".env, line 2 (BASIC_BASE_URL): models.basic.base_url",
        ),
        ("", "BASIC_MODEL=m\nBASIC_BASE_URL=http://[", "write it as https://host/v1"),
        ("models: {basic: {model: m, temperature: 3}}", "", "models.basic.temperature: Input should be less"),
    ],
)
def test_each_mistake_is_named_with_its_file_line_and_key(load, yaml, env_file, words):
    with pytest.raises(ConfigError) as caught:
        load(yaml, env_file)
    assert words in str(caught.value)


def test_all_mistakes_are_reported_at_once(load):
    with pytest.raises(ConfigError) as caught:
        load("server: {port: x}", "", MANIPLE_TEAM__STEP_RETRIES="many")
    assert "server.port" in str(caught.value)
    assert "environment variable MANIPLE_TEAM__STEP_RETRIES: team.step_retries" in str(caught.value)


def test_secrets_are_never_repeated(load):
    settings = load("", "BASIC_API_KEY=sk-canary\nTAVILY_API_KEY=sk-canary")
    assert "sk-canary" not in repr(settings)
    with pytest.raises(ConfigError) as caught:
        load("models: {basic: {model: [sk-canary], api_key: [sk-canary]}}")
    assert "sk-canary" not in str(caught.value)


def test_a_file_that_is_no_text_is_named(load, tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"x\.yaml: cannot be read"):
        load_settings(tmp_path / "x.yaml", env_file=tmp_path / "no", environment={})


def keys_of(model: type[BaseModel]) -> set[str]:
    names = set()
    for name, field in model.model_fields.items():
        names.add(name)
        for one in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(one, type) and issubclass(one, BaseModel) and one is not model:
                names |= keys_of(one)
    return names


def test_the_shipped_files_explain_every_key_and_hold_the_defaults(tmp_path):
    text = (ROOT / "conf.yaml").read_text(encoding="utf-8")
    unexplained = {name for name in keys_of(Settings) if not re.search(rf"\b{name}\b", text)}
    assert unexplained == set()
    shipped = load_settings(ROOT / "conf.yaml", env_file=tmp_path / "no", environment={})
    assert shipped == load_settings(tmp_path / "no", env_file=tmp_path / "no", environment={})


def test_the_env_example_names_every_variable():
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert {name for name in ALIASES if not re.search(rf"^{name}=", text, re.M)} == set()


def test_runs_are_set_like_everything_else(load):
    runs = load(
        "runs: {approval: [bash_tool], budget: {tokens: 10, cost: 0.5}}",
        "MANIPLE_RUNS__BUDGET__SECONDS=60",
        MANIPLE_RUNS__APPROVAL="bash_tool, write_file",
    ).runs
    assert runs.approval == ("bash_tool", "write_file")
    assert (runs.budget.tokens, runs.budget.cost, runs.budget.seconds) == (10, 0.5, 60)
    assert (runs.budget.model_calls, runs.drain_seconds) == (None, 5)


@pytest.mark.parametrize(
    ("models", "unpriced"),
    [
        ("{basic: {model: m}}", ["m"]),
        ("{basic: {model: m, price_output: 0}}", []),
        ("{basic: {model: m, price_input: 1, fallbacks: [{model: n}, {model: m}]}}", ["n"]),
        ("{}", []),
    ],
)
def test_a_limit_of_cost_that_counts_nothing_is_reported(load, models, unpriced):
    assert load(f"models: {models}").notices == ()
    notices = load(f"models: {models}\nruns: {{budget: {{cost: 1}}}}").notices
    assert len(notices) == len(unpriced)
    for notice, name in zip(notices, unpriced, strict=True):
        assert f"{name} costs: no price" in notice
        assert "models.basic.price_input" in notice


@pytest.mark.parametrize("yaml", ["budget: {tokens: 0}", "budget: {cost: -1}", "drain_seconds: -1"])
def test_a_limit_that_nothing_could_keep_is_refused(load, yaml):
    with pytest.raises(ConfigError, match=r"line 2: runs\."):
        load(f"runs:\n  {yaml}")


def test_a_price_of_cached_tokens_needs_that_of_the_others(load):
    priced = "models:\n  basic: {model: m, price_input: 2, price_cached: 0.5}"
    assert load(priced).models.basic.price_cached == 0.5
    for alone in ("price_cached: 0.5", "price_cached: 0.5, price_output: 1"):
        with pytest.raises(ConfigError, match="price_cached needs price_input"):
            load(f"models:\n  basic: {{model: m, {alone}}}")


def test_prices_and_questions_have_their_bounds(load):
    basic = "models:\n  basic: {model: m, price_input: 2.5, price_output: 10}"
    assert load(basic).models.basic.price_output == 10
    for wrong in ("team:\n  max_questions: -1", "team:\n  max_clarifications: 9", basic.replace("10", "-1")):
        with pytest.raises(ConfigError, match="line 2"):
            load(wrong)


@pytest.mark.parametrize("written", ["bash_tool, python_repl_tool", '["bash_tool", "python_repl_tool"]'])
def test_a_list_from_the_environment_is_read_as_words_or_as_json(load, written):
    settings = load(MANIPLE_RUNS__APPROVAL=written)
    assert settings.runs.approval == ("bash_tool", "python_repl_tool")

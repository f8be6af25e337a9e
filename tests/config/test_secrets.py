from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from maniple.config import load_settings
from maniple.config.secrets import secrets_of


def canary(number: int) -> str:
    return f"canary-{number:02}-key"


def endpoint(number: int) -> dict[str, Any]:
    return {
        "model": "m",
        "api_key": canary(number),
        "base_url": f"https://me:{canary(number + 1)}@e.test/v1?api-key={canary(number + 2)}&version=2024",
    }


def test_every_secret_of_the_settings_is_found(tmp_path: Path) -> None:
    import yaml

    tree = {
        "models": {"basic": {**endpoint(0), "fallbacks": [endpoint(3)]}, "vision": endpoint(6)},
        "search": {"tavily_api_key": canary(9)},
        "fetch": {"jina_api_key": canary(10)},
        "browser": {
            "proxy_password": canary(11),
            "proxy_username": "an-ordinary-name",
            "proxy_server": f"http://{canary(12)}@p.test:1",
        },
    }
    path = tmp_path / "conf.yaml"
    path.write_text(yaml.safe_dump(tree))
    settings = load_settings(path, env_file=tmp_path / "none", environment={})
    assert set(secrets_of(settings)) == {canary(number) for number in range(13)}


def test_placeholders_of_a_key_are_no_secrets(tmp_path: Path) -> None:
    for word in ("EMPTY", "not-needed", "none", "ollama", "lm-studio"):
        environment = {"BASIC_API_KEY": word, "BASIC_MODEL": "m", "BASIC_BASE_URL": "http://127.0.0.1:1/v1"}
        settings = load_settings(tmp_path / "none", env_file=tmp_path / "none", environment=environment)
        assert list(secrets_of(settings)) == []


def test_headers_and_quoted_passwords_are_found_with_and_without_their_clothes() -> None:
    class Server(BaseModel):
        headers: dict[str, str]
        url: str
        password: SecretStr

    server = Server(
        headers={"Authorization": "Bearer abc-token", "Accept": "text/html"},
        url="postgres://me:p%40ssword@h/db",
        password=SecretStr("pasted "),
    )
    assert set(secrets_of(server)) == {
        "Bearer abc-token",
        "abc-token",
        "p%40ssword",
        "p@ssword",
        "pasted ",
        "pasted",
    }


def test_a_default_of_nothing_has_no_secrets(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "none", env_file=tmp_path / "none", environment={})
    assert list(secrets_of(settings)) == []

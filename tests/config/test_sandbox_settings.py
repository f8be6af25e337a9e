"""Settings of the sandbox and their errors."""

import pytest

from maniple.config import Settings, load_settings
from maniple.config.secrets import secrets_of
from maniple.errors import ConfigError


@pytest.fixture
def load(tmp_path):
    def load(yaml: str = "", **environment: str) -> Settings:
        (tmp_path / "conf.yaml").write_text(yaml, encoding="utf-8")
        return load_settings(tmp_path / "conf.yaml", env_file=tmp_path / "none", environment=environment)

    return load


@pytest.mark.parametrize("name", ["bubblewrap", "docker", "daytona", "e2b", "unsafe-local", "off"])
def test_every_backend_is_chosen_by_its_name(load, name):
    assert load(f"sandbox: {{backend: {name}}}").sandbox.backend == name
    assert load(MANIPLE_SANDBOX__BACKEND=name).sandbox.backend == name


@pytest.mark.parametrize("name", ["local", "unsafe", "LOCAL", "none"])
def test_running_code_unprotected_must_be_spelled_out(load, name):
    with pytest.raises(ConfigError, match=r"line 2: sandbox\.backend: .*unprotected") as caught:
        load(f"sandbox:\n  backend: {name}")
    assert "write unsafe-local" in str(caught.value)


@pytest.mark.parametrize("name", ["unsafe_local", "Unsafe-Local", "unsafe-locl", "Docker"])
def test_a_backend_that_is_nearly_spelled_right_is_refused_with_the_right_ones(load, name):
    with pytest.raises(ConfigError, match=r"line 2: sandbox\.backend: .*'docker'.*'unsafe-local'"):
        load(f"sandbox:\n  backend: {name}")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("packages: ['--index-url=http://evil.test']", "sandbox.packages.0: .* is no package of PyPI"),
        ("packages: [openpyxl, 'a b']", "sandbox.packages.1: 'a b' is no package of PyPI"),
        ("packages: ['x @ https://evil.test/x.whl']", "sandbox.packages.0: x must come from PyPI"),
        ("allow_hosts: ['https://pypi.org/simple']", "sandbox.allow_hosts.0: .* is no host"),
        ("allow_hosts: ['*']", "sandbox.allow_hosts.0: .* is no host"),
        ("allow_hosts: ['pypi.org:0']", "sandbox.allow_hosts.0: .* is no host"),
        ("allow_hosts: ['a*.test']", "sandbox.allow_hosts.0: .* is no host"),
        ("allow_hosts: ['localhost:8080']", "sandbox.allow_hosts.0: localhost:8080 is the sandbox itself"),
        ("allow_hosts: ['*.localhost']", r"sandbox.allow_hosts.0: \*.localhost is the sandbox itself"),
        ("allow_hosts: ['127.0.0.1:80']", "sandbox.allow_hosts.0: 127.0.0.1:80 is the sandbox itself"),
        ("network: allowlist", "sandbox: network: allowlist needs allow_hosts"),
        ("network: all", "sandbox.network: Input should be 'none' or 'allowlist'"),
        ("idle_seconds: 0", "sandbox.idle_seconds: Input should be greater than 0"),
        ("daytona_api_url: daytona", "sandbox.daytona_api_url: this is no URL"),
        ("e2b_api_key: 'a\tb'", "sandbox.e2b_api_key: character 2 of this key is a control character"),
    ],
)
def test_each_mistake_is_named_with_its_line_and_key(load, line, words):
    with pytest.raises(ConfigError, match=rf"conf\.yaml, line [12]: {words}"):
        load(f"sandbox:\n  {line}")


def test_hosts_and_packages_are_read_from_the_environment_as_lists(load):
    sandbox = load(
        MANIPLE_SANDBOX__NETWORK="allowlist",
        MANIPLE_SANDBOX__ALLOW_HOSTS="PyPI.org, *.yahoo.com example.org:8443",
        MANIPLE_SANDBOX__PACKAGES="openpyxl>=3.1, scikit-learn[tests]",
    ).sandbox
    assert sandbox.allow_hosts == ("pypi.org", "*.yahoo.com", "example.org:8443")
    assert sandbox.packages == ("openpyxl>=3.1", "scikit-learn[tests]")


def test_the_variables_of_docker_daytona_and_e2b_are_read_and_their_keys_are_secrets(load):
    settings = load(
        DOCKER_HOST="tcp://me:canary-1@d.test:2376",
        DAYTONA_API_KEY="canary-2",
        DAYTONA_API_URL="https://me:canary-3@daytona.test/api",
        E2B_API_KEY="canary-4",
        DOCKER_BUILDKIT="1",
        E2B_DOMAIN="e2b.test",
    )
    assert set(secrets_of(settings)) == {"canary-1", "canary-2", "canary-3", "canary-4"}
    assert "canary-2" not in repr(settings)
    assert settings.notices == ()

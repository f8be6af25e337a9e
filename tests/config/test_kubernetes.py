"""A service called maniple in a cluster does not keep its own containers from starting."""

import pytest

from maniple.config import load_settings
from maniple.errors import ConfigError

INJECTED = {
    "MANIPLE_SERVICE_HOST": "10.96.0.17",
    "MANIPLE_SERVICE_PORT": "8000",
    "MANIPLE_SERVICE_PORT_HTTP": "8000",
    "MANIPLE_PORT": "tcp://10.96.0.17:8000",
    "MANIPLE_PORT_8000_TCP": "tcp://10.96.0.17:8000",
    "MANIPLE_PORT_8000_TCP_PROTO": "tcp",
    "MANIPLE_PORT_8000_TCP_PORT": "8000",
    "MANIPLE_PORT_8000_TCP_ADDR": "10.96.0.17",
    "MANIPLE_WEB_SERVICE_HOST": "fd00::17",
    "MANIPLE_WEB_PORT_443_UDP": "udp://[fd00::17]:443",
}


def test_what_a_cluster_reports_of_its_services_is_no_setting_and_no_slip(tmp_path):
    settings = load_settings(
        tmp_path / "conf.yaml",
        env_file=tmp_path / ".env",
        environment=INJECTED | {"MANIPLE_SERVER__PORT": "9"},
    )
    assert settings.server.port == 9
    assert settings.notices == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MANIPLE_PORT", "9000"),
        ("MANIPLE_PORT", "tcp://10.96.0.17:8000/"),
        ("MANIPLE_SERVER_HOST", "10.96.0.17"),
        ("MANIPLE_SERVICE_HOST", "example.org"),
        ("MANIPLE_SERVICE_PORT", "http"),
        ("MANIPLE_SERVER__SERVICE_PORT", "9000"),
        ("MANIPLE_PORT_8000_TCP_PROTO", "http"),
        ("MANIPLE_DATADIR", "/data"),
    ],
)
def test_a_misspelt_variable_is_refused_beside_injected_ones(tmp_path, name, value):
    files = {"env_file": tmp_path / ".env"}
    with pytest.raises(ConfigError, match=name):
        load_settings(tmp_path / "conf.yaml", **files, environment={name: value})


def test_in_a_file_nothing_is_injected(tmp_path):
    (tmp_path / ".env").write_text("MANIPLE_SERVICE_HOST=10.96.0.17\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no such key"):
        load_settings(tmp_path / "conf.yaml", env_file=tmp_path / ".env", environment={})

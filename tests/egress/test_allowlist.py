import pytest

from maniple.egress import AllowedHosts

HOSTS = AllowedHosts(["pypi.org", "*.Yahoo.com", "example.org:8443", "*.example.net:9000"])


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("pypi.org", 443),
        ("PyPI.org.", 443),
        ("query1.finance.yahoo.com", 443),
        ("example.org", 8443),
        ("a.example.net", 9000),
    ],
)
def test_what_is_named_is_allowed(host: str, port: int) -> None:
    assert HOSTS.allows(host, port, 443)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("pypi.org", 25),
        ("pypi.org", 80),
        ("files.pypi.org", 443),
        ("pypi.org.evil.com", 443),
        ("notpypi.org", 443),
        ("yahoo.com", 443),
        ("notyahoo.com", 443),
        ("yahoo.com.evil.com", 443),
        ("example.org", 443),
        ("a.example.net", 443),
        ("org", 443),
        ("", 443),
        (".", 443),
        ("*.yahoo.com..", 443),
    ],
)
def test_a_host_that_is_not_listed_is_refused(host: str, port: int) -> None:
    assert not HOSTS.allows(host, port, 443)

"""Which authorities are trusted."""

import ssl
import subprocess
from pathlib import Path

import certifi
import pytest

from maniple.egress import certificates
from maniple.egress.certificates import company_authorities, describe_certificate_failure, tls_context
from maniple.errors import ConfigError
from tests.egress.proxy_servers import TestAuthority

NOWHERE = "/nowhere"


@pytest.fixture(autouse=True)
def _names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


def set_system_store(patch: pytest.MonkeyPatch, file: str = NOWHERE, folder: str = NOWHERE) -> None:
    """Let OpenSSL have been compiled with these paths."""
    found = ssl.get_default_verify_paths()._replace(
        openssl_cafile=file,
        openssl_capath=folder,
        cafile=file if Path(file).is_file() else None,
        capath=folder if Path(folder).is_dir() else None,
    )
    patch.setattr(ssl, "get_default_verify_paths", lambda: found)


def is_trusted(authority: TestAuthority, name: str = "site.example") -> bool:
    """Shake hands with a server of the authority, in memory."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls_context().wrap_bio(incoming, outgoing, server_hostname=name)
    server = authority.context.wrap_bio(outgoing, incoming, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                assert describe_certificate_failure(error)
                return False
    return True


def test_the_authority_of_a_company_in_the_system_store_is_trusted(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_trusted(authority)
    set_system_store(monkeypatch, file=str(authority.file))
    assert is_trusted(authority)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_authority_of_the_environment_is_trusted(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch, variable: str, tmp_path: Path
) -> None:
    command = ("openssl", "x509", "-hash", "-noout", "-in", str(authority.file))
    digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / f"{digest}.0").write_bytes(authority.file.read_bytes())
    monkeypatch.setenv(variable, str(authority.file if variable == "SSL_CERT_FILE" else tmp_path))
    assert is_trusted(authority)
    assert not is_trusted(authority, "other.example")


def test_without_a_store_public_authorities_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("httpcore2._ssl.CA_FILE_CANDIDATES", ())
    set_system_store(monkeypatch)
    assert tls_context().cert_store_stats()["x509_ca"] > 50


def test_a_folder_without_usable_certificates_names_the_variable(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "company.pem").write_bytes(authority.file.read_bytes())
    for folder in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv("SSL_CERT_DIR", str(folder))
        with pytest.raises(ConfigError, match="SSL_CERT_DIR"):
            tls_context()


@pytest.mark.parametrize("content", ["", "no certificate"])
def test_a_file_without_certificates_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    (tmp_path / "company.pem").write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "company.pem"))
    with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        tls_context()


def test_other_errors_are_no_matter_of_certificates() -> None:
    assert describe_certificate_failure(ssl.SSLError("wrong version")) == ""


def test_the_authorities_that_a_variable_adds_are_listed_and_public_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = TestAuthority.create(tmp_path).file.read_text()
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(Path(certifi.where()).read_text(encoding="utf-8") + own, encoding="utf-8")
    for file in (tmp_path / "ca.pem", bundle):
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        [listed] = company_authorities()
        assert "".join(listed.split()) in "".join(own.split())


def test_the_authorities_that_an_administrator_adds_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme").mkdir()
    authority = TestAuthority.create(tmp_path)
    authority.file.rename(tmp_path / "acme/root.crt")
    (tmp_path / "broken.crt").write_text("no certificate", encoding="utf-8")
    monkeypatch.setattr(certificates, "_ADDED_BY_HAND", (tmp_path,))
    assert len(company_authorities()) == 1

"""The certificate authorities that connections trust: the environment's, or the system's store.

A company adds its authority to the system's store, or names it in SSL_CERT_FILE or SSL_CERT_DIR. The store is
read once for each client: truststore would read it for each connection, 23 ms on the event loop. On macOS and
Windows truststore asks the system itself (all of that is `httpx2.create_ssl_context`).
"""

import os
import re
import ssl
import sys
from contextlib import suppress
from pathlib import Path

from maniple.errors import ConfigError, causes_of

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_ADDED_BY_HAND = tuple(
    map(
        Path,
        (
            "/usr/local/share/ca-certificates",
            "/etc/pki/ca-trust/source/anchors",
            "/etc/ca-certificates/trust-source/anchors",
        ),
    )
)
"""Where Debian, Red Hat and Arch keep the authorities that an administrator adds."""
_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.\d+")
"""The names that OpenSSL looks for in a folder."""
# https://docs.openssl.org/3.0/man1/openssl-verification-options/: X509_V_ERR_…
_UNKNOWN_ISSUER_CODES = frozenset({2, 18, 19, 20, 21})
_REMEDY = (
    "If your company's proxy or authority signed it, add that authority to the system's store, or name its "
    "file (PEM) in SSL_CERT_FILE"
)


def tls_context() -> ssl.SSLContext:
    """Return the context of a client. Blocks: it reads certificates from disk (24 ms).

    Raises `ConfigError` if a variable names certificates that cannot be used.
    """
    import httpx2  # takes 0.1 s

    variable = next((name for name in _VARIABLES if os.environ.get(name)), None)  # noqa: TID251 - OpenSSL's
    try:
        context = httpx2.create_ssl_context()
    except OSError as error:
        raise ConfigError(
            f"The certificates of {variable or 'the system'} cannot be read ({error.strerror or error}). "
            "Correct the variable or the file."
        ) from error
    if sys.platform in ("darwin", "win32") or context.cert_store_stats()["x509"]:
        return context
    # From a folder, certificates are read when they are needed.
    folder = ssl.get_default_verify_paths().capath
    if folder is None or not any(_HASHED_NAME.fullmatch(one.name) for one in Path(folder).iterdir()):
        if variable is not None:
            raise ConfigError(
                f"{variable} names a folder without certificates by their hash. "
                "Run `openssl rehash` for it, or unset the variable."
            )
        import certifi

        context.load_verify_locations(certifi.where())  # the system has no store, as in small images
    return context


def describe_certificate_failure(error: BaseException) -> str:
    """Return why a server's certificate was refused and what to do; "" for any other error."""
    for cause in causes_of(error):
        # aiohttp has an error of that class without the details, caused by the one with them.
        if isinstance(cause, ssl.SSLCertVerificationError) and hasattr(cause, "verify_code"):
            reason = f"its certificate is not trusted: {cause.verify_message.rstrip('.')}"
            return f"{reason}. {_REMEDY}" if cause.verify_code in _UNKNOWN_ISSUER_CODES else reason
    return ""


def company_authorities() -> list[str]:
    """Return, as PEM, the authorities that somebody added: to the system's store, or by a variable.

    For programs that bring a store of their own. Blocks: it reads certificates from disk. Raises
    `ConfigError` as `tls_context` does.
    """
    if any(os.environ.get(name) for name in _VARIABLES):  # noqa: TID251 - OpenSSL's
        import certifi

        public = ssl.create_default_context(cafile=certifi.where()).get_ca_certs(binary_form=True)
        trusted = tls_context().get_ca_certs(binary_form=True)
    else:
        public, added = [], ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for folder in _ADDED_BY_HAND:
            for file in (*folder.glob("**/*.crt"), *folder.glob("**/*.pem")):
                with suppress(OSError):
                    added.load_verify_locations(file)
        trusted = added.get_ca_certs(binary_form=True)
    return [ssl.DER_cert_to_PEM_cert(one) for one in trusted if one not in public]

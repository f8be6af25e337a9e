"""The environment of tests: no settings except those of the test."""

import os
from pathlib import Path

from maniple.config.sources import ALIASES, PREFIX

CERTIFICATES = {"SSL_CERT_FILE": str(Path(__file__).with_name("authority.pem"))}
"""One authority without a known key: loopback needs none, and loading all takes each client 25 ms."""

# What the libraries below us read by themselves, too.
_PREFIXES = (
    *(PREFIX, "OPENAI_", "AZURE_OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LANGGRAPH_", "OTEL_"),
    *("DOCKER_", "DAYTONA_", "E2B_"),
)
_TERMINAL = {"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"}


def configures(name: str) -> bool:
    """Whether an environment variable of this name changes what the program does."""
    return name in ALIASES or name in _TERMINAL or name.startswith(_PREFIXES)


def environment(base_url: str, home: Path | str, **more: str) -> dict[str, str]:
    """Return the whole environment of a fresh user in `home` who configured the model at `base_url`."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "BASIC_MODEL": "scripted",
        "BASIC_API_KEY": "sk-canary-0123456789",
        "BASIC_BASE_URL": base_url,
        "MANIPLE_DATA_DIR": f"{home}/data",
        "MANIPLE_CACHE_DIR": f"{home}/cache",
        # Settings that a test writes there apply; tests/config/test_trust.py is about folders without trust.
        "MANIPLE_TRUSTED_FOLDERS": str(home),
        # Without a key the team would search with what needs none, which is beyond this machine.
        "MANIPLE_SEARCH__PROVIDERS": "[]",
        # The sites of tests count their requests, and many show one page for any address.
        "MANIPLE_FETCH__PROBE_SITES": "false",
        **CERTIFICATES,
        **more,
    }

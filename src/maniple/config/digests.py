"""Digests of settings, by which the processes of one installation are compared."""

import hashlib
import json

from maniple.config.settings import Settings

_OF_A_PROCESS = frozenset(
    ("server", "store", "logging", "telemetry", "data_dir", "cache_dir", "secret_key", "former_secret_key")
)
"""Sections that may differ between the processes on one database, or that only they can compare."""
_OF_A_WORKER = frozenset(("worker_concurrency",))


def digest_sections(settings: Settings) -> dict[str, str]:
    """Return a digest of each section that decides how a run works, without the values of secrets."""
    sections = settings.model_dump(mode="json", exclude=set(_OF_A_PROCESS))
    sections["runs"] = {name: one for name, one in sections["runs"].items() if name not in _OF_A_WORKER}
    return {name: _digest(section) for name, section in sections.items()}


def _digest(section: object) -> str:
    return hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()

"""The hosts that settings name."""

from collections.abc import Iterable


class AllowedHosts:
    """Names of hosts: `pypi.org`, `*.yahoo.com` (what is below it, not yahoo.com itself), `example.org:8443`.

    Without a port a name stands for the one that the scheme has by itself: 443 of https, 80 of http.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.casefold() for name in names)

    def name(self, host: str, port: int, usual_port: int) -> bool:
        """Say whether one of them is this `host`, spelled in any case, at this `port`."""
        host = host.casefold().removesuffix(".")
        _, *above = _and_above(host)
        spellings = {host, *(f"*.{parent}" for parent in above)}
        if port == usual_port and not self._names.isdisjoint(spellings):
            return True
        return not self._names.isdisjoint(f"{spelling}:{port}" for spelling in spellings)


def _and_above(host: str) -> Iterable[str]:
    labels = host.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]

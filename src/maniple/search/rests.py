"""Which providers are left alone after a failure, and until when."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maniple.search.provider import ProviderFailure, RateLimited

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Rest:
    until: float
    failure: ProviderFailure


class Rests:
    """Providers that failed rest: until the time that they named, else for a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: dict[str, _Rest] = {}

    def begin(self, name: str, failure: ProviderFailure) -> None:
        """Leave the provider alone for as long as its failure says."""
        if failure.rest_seconds > 0:
            self._rests[name] = _Rest(self._clock() + failure.rest_seconds, failure)
            _log.warning("Search by %s is set aside for %.0f s: %s", name, failure.rest_seconds, failure)

    def end(self, name: str) -> None:
        """The provider has answered."""
        self._rests.pop(name, None)

    def reasons(self) -> dict[str, str]:
        """Return who rests, and why."""
        now = self._clock()
        self._rests = {name: rest for name, rest in self._rests.items() if rest.until > now}
        return {
            name: f"set aside for {max(rest.until - now, 1):.0f} s: {rest.failure}"
            for name, rest in self._rests.items()
        }

    def awake(self, names: Iterable[str]) -> list[str]:
        """Return whom to ask. When all rest, those who named no time: nobody is left alone for good."""
        asked, resting = list(names), self.reasons()
        return [name for name in asked if name not in resting] or [
            name for name in asked if not isinstance(self._rests[name].failure, RateLimited)
        ]

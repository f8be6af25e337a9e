"""The variables that Kubernetes gives every container about a service, which may be called maniple.

Named `MANIPLE_…` they look like settings of ours and are none.
See https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.
"""

import re

_SERVICE = r"MANIPLE(?:_[A-Z0-9]+)*"
_PORT = rf"{_SERVICE}_PORT_\d+_(?:TCP|UDP|SCTP)"
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]+)"
_URL = r"(?:tcp|udp|sctp)://(?:[\d.]+|\[[0-9a-f:.]+\]):\d+"
_INJECTED = re.compile(
    rf"(?:{_SERVICE}_SERVICE_HOST|{_PORT}_ADDR)={_ADDRESS}"
    rf"|(?:{_SERVICE}_SERVICE_PORT(?:_[A-Z0-9]+)*|{_PORT}_PORT)=\d+"
    rf"|(?:{_SERVICE}_PORT|{_PORT})={_URL}"
    rf"|{_PORT}_PROTO=(?:tcp|udp|sctp)"
)


def is_injected(name: str, value: str) -> bool:
    """Say whether a variable tells of a service: by its name and by its value, so that slips stay slips."""
    return _INJECTED.fullmatch(f"{name}={value}") is not None

"""Settings of the sandbox for code that a model wrote."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from maniple.config.values import ApiKey, EndpointUrl, OptionalText, Section, UserPath

BACKENDS = ("bubblewrap", "docker", "daytona", "e2b", "unsafe-local", "off")
"""Every value of `sandbox.backend`."""

_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*(:(?P<port>\d{{1,5}}))?")
# The hosts that bypass the proxy, in the format of `no_proxy`.
_OWN_HOST = re.compile(r"((.*\.)?localhost|127\.0\.0\.1)(:\d+)?")


def _is_backend(name: object) -> object:
    if name is False:  # YAML reads a bare off as no
        return "off"
    if isinstance(name, str) and name not in BACKENDS and name.casefold() in ("local", "unsafe", "none"):
        raise ValueError(
            "code would run unprotected, with the server's own rights: if that is meant, write unsafe-local; "
            "else choose bubblewrap, docker, daytona or e2b, or off for running no code at all"
        )
    return name


def _is_package(text: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise ValueError(
            f"{text[:60]!r} is no package of PyPI; write its name, with or without a version: openpyxl>=3.1"
        ) from None
    if requirement.url:
        raise ValueError(f"{requirement.name} must come from PyPI. Use a version instead of an address")
    return text


def _is_host(text: str) -> str:
    host = text.casefold()
    found = _HOST.fullmatch(host)
    if found is None or not 0 < int(found["port"] or 443) < 65_536:
        raise ValueError(
            f"{text[:60]!r} is no host; write its bare name, such as pypi.org, *.yahoo.com or pypi.org:443"
        )
    if _OWN_HOST.fullmatch(host):
        raise ValueError(
            f"{host} is the sandbox itself, which code reaches anyway; give this machine another name in "
            "/etc/hosts, with an address that fetch.allow_private names"
        )
    return host


Backend = Annotated[
    Literal["bubblewrap", "docker", "daytona", "e2b", "unsafe-local", "off"], BeforeValidator(_is_backend)
]
Package = Annotated[str, AfterValidator(_is_package)]
AllowedHost = Annotated[str, AfterValidator(_is_host)]


class SandboxSettings(Section):
    """The sandbox for code that a model wrote, and its limits."""

    backend: Backend = "bubblewrap"
    python: UserPath | None = None
    """The interpreter inside bubblewrap and of unsafe-local."""
    timeout_seconds: float = Field(default=30, gt=0)
    """The time limit of one call."""
    memory_mb: int = Field(default=512, gt=0)
    processes: int = Field(default=64, gt=0)
    disk_mb: int = Field(default=100, gt=0)
    output_bytes: int = Field(default=65_536, gt=1024)
    """The limit of each output stream of one call; of longer output, head and tail are retained."""
    concurrent: int = Field(default=8, gt=0)
    """The limit of concurrent calls of all threads."""
    resident: int | None = Field(default=None, gt=0)
    """The limit of sessions of all threads, at least `concurrent`; the others rest. Default: by memory."""
    idle_seconds: float = Field(default=600, gt=0)
    """The idle time after which a thread's session ends and its variables are lost."""
    packages: tuple[Package, ...] = ()
    """Packages of PyPI in addition to the default ones."""
    network: Literal["none", "allowlist"] = "none"
    allow_hosts: tuple[AllowedHost, ...] = ()
    """The hosts of the allowlist: `pypi.org`, `*.yahoo.com`, `host:port`."""
    image: OptionalText = None
    """The container image, for docker and daytona; each has its own default."""
    template: OptionalText = None
    """The template of e2b; default: its code interpreter."""
    docker_host: OptionalText = None
    """The address of the Docker engine, such as `unix:///run/user/1000/docker.sock`."""
    daytona_api_key: ApiKey = None
    daytona_api_url: EndpointUrl = None
    e2b_api_key: ApiKey = None

    @property
    def workspace_bytes(self) -> int:
        """The limit of all files of a workspace together, in bytes."""
        return self.disk_mb * 1024 * 1024

    @model_validator(mode="after")
    def _calls_need_sessions(self) -> "SandboxSettings":
        if self.resident is not None and self.resident < self.concurrent:
            raise ValueError(f"resident must be at least concurrent, which is {self.concurrent}")
        return self

    @model_validator(mode="after")
    def _allowlist_names_hosts(self) -> "SandboxSettings":
        if self.network == "allowlist" and not self.allow_hosts:
            raise ValueError("network: allowlist needs allow_hosts, such as [pypi.org]")
        return self

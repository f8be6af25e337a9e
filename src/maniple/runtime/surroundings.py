"""What the coder's model is told of the place where its code runs."""

from maniple.config import Settings
from maniple.sandbox.package_environment import list_installed_packages

_NAMED_HOSTS = 10


def packages_sentence(settings: Settings) -> str:
    """Name the packages that are prepared, without their versions; "" for none. Blocks on disk."""
    installed = list_installed_packages(settings.sandbox, settings.cache_dir)
    names = [package.partition(" ")[0] for package in installed]
    return f"There are {', '.join(names)}." if names else ""


def network_sentence(settings: Settings) -> str:
    """Say what code can reach; "" where nothing keeps it."""
    sandbox = settings.sandbox
    if sandbox.backend == "unsafe-local":
        return ""
    if sandbox.network == "none":
        return "No network."
    named = ", ".join(sandbox.allow_hosts[:_NAMED_HOSTS])
    more = " and others" if len(sandbox.allow_hosts) > _NAMED_HOSTS else ""
    return f"Of the network, only {named}{more}."

"""Docker's engine: where it is, and in which words its failures are told."""

from collections.abc import Iterator
from contextlib import contextmanager

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError

DEFAULT_IMAGE = "python:3.12-slim"
DEFAULT_HOST = "unix:///var/run/docker.sock"
_UNREACHABLE = 900  # what the SDK says where there was no answer


@contextmanager
def explained(settings: SandboxSettings) -> Iterator[None]:
    """Turn what the SDK raises into a sentence that says what to do."""
    import aiohttp
    from aiodocker import DockerError

    image = settings.image or DEFAULT_IMAGE
    try:
        yield
    except DockerError as error:
        if (
            error.status == _UNREACHABLE
        ):  # its own words hold the whole address, and a password may stand in it
            raise SandboxError(_unreachable(settings)) from None
        if error.status == 404 and "image" in error.message.casefold():
            raise SandboxError(f"Docker does not have the image {image}: docker pull {image}") from None
        raise SandboxError(f"Docker could not do it: {error.message}") from error
    except (ValueError, ImportError) as error:
        raise SandboxError(f"DOCKER_HOST names no engine that can be used: {error}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise SandboxError(_unreachable(settings)) from error


def _unreachable(settings: SandboxSettings) -> str:
    host = "that DOCKER_HOST names" if settings.docker_host else f"at {DEFAULT_HOST}"
    return (
        f"Docker's engine {host} cannot be reached: `systemctl start docker`, let this user belong to the "
        "group docker, or correct DOCKER_HOST."
    )

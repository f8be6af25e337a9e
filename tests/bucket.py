"""A service with S3's protocol for tests: moto's server on loopback, with a bucket for each test."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from maniple.config.service_settings import ArtifactSettings


@dataclass(frozen=True, slots=True)
class Bucket:
    """An empty bucket."""

    endpoint: str
    name: str

    def settings(self, prefix: str = "artifacts/of one", **changes: Any) -> ArtifactSettings:
        """Return settings that keep artifacts below `prefix`."""
        given = {
            "url": f"s3://{self.name}/{prefix}",
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test-secret",
        }
        return ArtifactSettings.model_validate(given | changes)

    def list_keys(self) -> list[str]:
        """Return the keys of its objects."""
        listing = httpx.get(f"{self.endpoint}/{self.name}?list-type=2", timeout=30).text
        return [part.partition("</Key>")[0] for part in listing.split("<Key>")[1:]]

    def put(self, key: str, content: bytes) -> None:
        """Store an object beside maniple."""
        httpx.put(f"{self.endpoint}/{self.name}/{key}", content=content, timeout=30).raise_for_status()


@pytest.fixture(scope="session")
def bucket_service() -> Iterator[str]:
    """The address of a running service."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(bucket_service: str) -> Bucket:
    """A new bucket."""
    name = f"bucket-{uuid4()}"
    httpx.put(f"{bucket_service}/{name}", timeout=30).raise_for_status()
    return Bucket(bucket_service, name)

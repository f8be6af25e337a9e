"""The model file from a model hub, by HTTP with resuming."""

import asyncio

import httpx

from maniple.errors import EmbeddedModelError
from maniple.llms.embedded.files import ModelFile
from maniple.llms.embedded.job import FetchJob

# Reachable or not is to be known soon, because there is another mirror; a stalled transfer may take longer.
_TIMEOUT = httpx.Timeout(20, connect=3)
_FRUITLESS_TRIES = 3
_PAUSE_SECONDS = 1.0


class HubUnavailable(EmbeddedModelError):
    """The hub cannot be reached or does not serve the file; the message says which and why."""


async def fetch_from_hub(hub_url: str, job: FetchJob) -> None:
    """Append to `job.part` what it lacks, so that it has the model's size; its content is not checked.

    A connection that is cut is taken up again where it ended. Raises HubUnavailable when the first request
    fails or three in a row bring nothing; what has arrived by then stays.
    """
    url = hub_url.rstrip("/") + job.model.hub_path
    job.progress.step("asking the model hub")
    tries_left = 1
    async with httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=True) as client:
        while (offset := await asyncio.to_thread(job.present_bytes)) < job.model.size:
            try:
                await _transfer(client, url, offset, job)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if await asyncio.to_thread(job.present_bytes) > offset:
                    tries_left = _FRUITLESS_TRIES
                    continue
                tries_left -= 1
                if not tries_left:
                    reason = str(error) or type(error).__name__
                    raise HubUnavailable(f"The model hub {hub_url} cannot be reached: {reason}.") from error
                await asyncio.sleep(_PAUSE_SECONDS)


async def _transfer(client: httpx.AsyncClient, url: str, offset: int, job: FetchJob) -> None:
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={offset}-"}
    async with client.stream("GET", url, headers=headers) as response:
        done = _start_of(response, offset, job.model)
        target = await asyncio.to_thread(job.part.open, "ab" if done else "wb")
        try:
            async for block in response.aiter_raw():
                done += len(block)
                if done > job.model.size:
                    raise HubUnavailable(f"{url} sends more than the {job.model.size} bytes of the model.")
                await asyncio.to_thread(target.write, block)
                job.tell("fetching the local model from the hub", done)
        finally:
            # Closing waits for a write in flight and makes later ones fail: after it, nobody writes any more.
            target.close()


def _start_of(response: httpx.Response, offset: int, model: ModelFile) -> int:
    """Where the body begins in the file: `offset`, or 0 from a server that knows no ranges.

    A sign-in page of a network answers 200 too, so the size has to be the file's.
    """
    length = response.headers.get("Content-Length", "unknown")
    content_range = response.headers.get("Content-Range")
    if response.status_code == 206 and content_range == f"bytes {offset}-{model.size - 1}/{model.size}":
        return offset
    if response.status_code == 200 and length == str(model.size):
        return 0
    raise HubUnavailable(
        f"The model hub does not serve {model.name}: {response.url.host} answered {response.status_code} "
        f"with {length} bytes."
    )

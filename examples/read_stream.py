"""Ask the team over HTTP and read the events of its run, also when the connection is lost in between.

    python examples/read_stream.py "1+3=?" [http://127.0.0.1:8000]

Prints the plan, the calls of tools, the report as it is written, and how the run ended. Events have numbers:
after a lost connection the reader continues behind the last one, so that none is missing or printed twice.
The exit status is 0 if the run completed, 2 if it waits for an answer, else 1. The API key, if the server
wants one, is read from the variable TEAM_API_KEY.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx

# The server sends a comment each 15 s, so a longer silence is a lost connection.
TIMEOUT = httpx.Timeout(10, read=60)
RETRIES, RETRY_SECONDS = 60, 1
EXIT_STATUS = {"completed": 0, "interrupted": 2}
Frame = tuple[int, str, dict[str, Any]]


def main(question: str, server: str = "http://127.0.0.1:8000") -> int:
    key = os.environ.get("TEAM_API_KEY")
    headers = {"X-API-Key": key} if key else {}
    status, authors = "", {}
    with httpx.Client(base_url=server, headers=headers, timeout=TIMEOUT) as client:
        try:
            for name, data in follow_run(client, question):
                print_event(name, data, authors)
                status = data["status"] if name == "run_status" else status
        except httpx.HTTPError as error:
            print(f"\n{error}", file=sys.stderr)
    return EXIT_STATUS.get(status, 1)


def follow_run(client: httpx.Client, question: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Start a run and yield its events by name and data, the last one being `final_session_state`.

    Raises `httpx.HTTPError` if the server refuses the request, or cannot be reached again.
    """
    run_id, last, retries = "", 0, 0
    while True:
        try:
            for number, name, data in read_frames(client, question, run_id, last):
                if not number:
                    continue  # It only closes this stream: the server stops, and the run continues later.
                run_id, last, retries = run_id or data["run_id"], number, 0
                yield name, data
                if name == "final_session_state":
                    return
        except httpx.TransportError:
            # Without the run's id nobody can tell whether it has started: asking again might start a second.
            if not run_id:
                raise
        retries += 1
        if retries > RETRIES:
            raise httpx.ConnectError(f"The events of run {run_id} cannot be read.")
        time.sleep(RETRY_SECONDS)


def read_frames(client: httpx.Client, question: str, run_id: str, last: int) -> Iterator[Frame]:
    """Yield number (0: none), name and data of what one request streams: a new run, or a run after `last`."""
    if run_id:
        path, headers = f"/api/runs/{run_id}/events", {"Last-Event-ID": str(last)}
        request = client.build_request("GET", path, params={"view": "live"}, headers=headers)
    else:
        body = {"messages": [{"role": "user", "content": question}], "on_disconnect": "continue"}
        request = client.build_request("POST", "/api/chat/stream", params={"view": "live"}, json=body)
    response = client.send(request, stream=True)
    try:
        check_status(response, is_retried=bool(run_id))
        waiting = ""
        # Not `iter_lines`: it also splits at characters such as U+2028, which a text may contain.
        for text in response.iter_text():
            *complete, waiting = (waiting + text).split("\n\n")
            for frame in complete:
                lines = (line.partition(": ") for line in frame.split("\n"))
                fields = {key: value for key, _, value in lines}
                if "event" in fields:  # else a comment
                    yield int(fields.get("id", 0)), fields["event"], json.loads(fields["data"])
    finally:
        response.close()


def check_status(response: httpx.Response, *, is_retried: bool) -> None:
    """Raise what the server says: `TransportError` where another try may help, else `HTTPStatusError`."""
    if response.is_success:
        return
    response.read()
    detail = f"{response.status_code}: {response.text}"
    if is_retried and response.status_code in (429, 502, 503, 504):
        raise httpx.TransportError(detail)
    raise httpx.HTTPStatusError(detail, request=response.request, response=response)


def print_event(name: str, data: dict[str, Any], authors: dict[str, str]) -> None:
    """Print what a person wants to see of an event, if anything; `authors` are the agents' names by id."""
    match name:
        case "start_of_agent":
            authors[data["agent_id"]] = data["agent_name"]
        case "plan" if not data.get("draft"):
            steps = [f"{step['status']:12} {step['agent_name']}: {step['title']}" for step in data["steps"]]
            print("", data["title"], *steps, sep="\n")
        case "tool_call":
            print(f"\n{data['tool_name']} {json.dumps(data['tool_input'], ensure_ascii=False)}")
        case "message" if authors.get(data["agent_id"]) in ("coordinator", "reporter"):
            print(data["delta"].get("content", ""), end="", flush=True)
        case "interrupt":
            print(f"\nWaits ({data['kind']}): {json.dumps(data['payload'], ensure_ascii=False)}")
        case "error":
            print(f"\n{data['code']}: {data['message']}", file=sys.stderr)
        case "run_status":
            gaps = [f"Missing: {gap['step']}: {gap['reason']}" for gap in data.get("gaps", [])]
            print(f"\nStatus: {data['status']}", *gaps, sep="\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

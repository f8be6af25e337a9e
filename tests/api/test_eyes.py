"""A picture of the user reaches every member whose model sees; the others say that they do not see it."""

import base64
import hashlib
import io
import json
from typing import Any

import pytest
from PIL import Image

from tests.api.in_process import open_service
from tests.crawler.web import Reply, open_site, redirect
from tests.openai_server import call, reply, serving
from tests.reading.files import joined_pdf, pdf, scan
from tests.team import plan, step

pytestmark = pytest.mark.anyio

MEMBERS = ("researcher", "coder", "file_manager", "reporter")
ALL = {"members": [*MEMBERS, "manus"]}
LOCAL = {"backend": "unsafe-local"}
READERS = {"researcher": "read_item", "coder": "read_file", "file_manager": "read_file"}


def chart(color: str = "white", size: tuple[int, int] = (640, 480)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", size, color).save(stream, "PNG")
    return stream.getvalue()


def opening(name: str, **arguments: Any) -> dict[str, Any]:
    """A script in which each member with a reader opens a file."""
    steps = [step(member) for member in MEMBERS]
    script: dict[str, Any] = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(*steps)))],
        "reporter": [reply("# Report\n\nDone.")],
    }
    for member, reader in READERS.items():
        script[member] = [call(reader, path=name, **arguments), reply("Read.")]
    return script


def requests_of(server: Any, member: str) -> list[dict[str, Any]]:
    opened = (f"You are the {member.replace('_', ' ')}", f"You are {member},")
    shown = [one for one in server.requests if any(it in str(one["messages"][0]["content"]) for it in opened)]
    assert shown, f"no request of {member}"
    return shown


def pictures(request: dict[str, Any]) -> list[bytes]:
    parts = [
        part for one in request["messages"] if isinstance(one["content"], list) for part in one["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def text_of(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def blind(base_url: str, **others: Any) -> dict[str, Any]:
    endpoint = {"base_url": base_url, "max_retries": 0, "timeout_seconds": 60}
    basic = {"model": "scripted", **endpoint, "capabilities": {"vision": False}}
    return {"basic": basic, **{kind: {"model": name, **endpoint} for kind, name in others.items()}}


async def upload(it: Any, name: str, content: bytes) -> str:
    thread_id = await it.thread()
    response = await it.client.post(f"/api/threads/{thread_id}/files", files={"files": (name, content)})
    assert response.status_code == 201, response.text
    return thread_id


async def work(it: Any, thread_id: str, **body: Any) -> None:
    run = await it.run(thread_id=thread_id, **body)
    frames = await it.events_of(run["run_id"])
    assert (await it.get(f"/api/runs/{run['run_id']}"))["status"] == "completed", frames[-3:]


async def test_an_uploaded_picture_is_in_the_requests_of_every_member_whose_model_sees(tmp_path):
    content = chart()
    with serving(opening("chart.png")) as server:
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL) as it:
            await work(it, await upload(it, "chart.png", content))
    for member in MEMBERS:
        assert all(content in pictures(request) for request in requests_of(server, member)), member
    for member in READERS:
        assert len(pictures(requests_of(server, member)[-1])) == 2, member


async def test_members_whose_models_do_not_see_are_sent_no_picture_and_say_so(tmp_path):
    with serving(opening("chart.png")) as server:
        async with open_service(
            server.base_url, tmp_path, sandbox=LOCAL, models=blind(server.base_url)
        ) as it:
            await work(it, await upload(it, "chart.png", chart()))
    assert not any(pictures(request) for request in server.requests)
    for member in MEMBERS:
        shown = text_of(requests_of(server, member)[-1])
        assert "chart.png is a picture (PNG, 640 x 480 pixels)" in shown, member
        assert "No model of the settings does" in shown, member


async def test_a_model_of_the_settings_that_sees_describes_it_to_members_that_do_not(tmp_path):
    with serving({"other": [reply("Two bars: 3 and 7.")]}) as seer, serving(opening("chart.png")) as server:
        models = blind(server.base_url)
        models["vision"] = {**models["basic"], "model": "seer", "base_url": seer.base_url, "capabilities": {}}
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL, models=models) as it:
            await work(it, await upload(it, "chart.png", chart()))
    assert [len(pictures(request)) for request in seer.requests] == [1]
    assert not any(pictures(request) for request in server.requests)
    for member in MEMBERS:
        shown = text_of(requests_of(server, member)[-1])
        assert "The model seer sees" in shown, member
        assert "Two bars: 3 and 7." in shown, member


@pytest.mark.slow
async def test_a_large_picture_is_scaled_to_what_models_take(tmp_path):
    with serving(opening("chart.png")) as server:
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL) as it:
            await work(it, await upload(it, "chart.png", chart(size=(5_000, 4_000))))
    (shown, *_) = pictures(requests_of(server, "coder")[0])
    assert Image.open(io.BytesIO(shown)).size == (1_568, 1_254)


@pytest.mark.parametrize(
    ("name", "content"),
    [("chart.png", chart()[:80]), ("photo.heic", bytes(4) + b"ftypheic" + bytes(99)), ("x.svg", b"<svg/>")],
)
async def test_a_picture_that_cannot_be_decoded_ends_no_step(tmp_path, name, content):
    with serving(opening(name)) as server:
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL) as it:
            await work(it, await upload(it, name, content))
    assert not any(pictures(request) for request in server.requests)
    assert name in text_of(requests_of(server, "researcher")[-1])


@pytest.mark.slow
async def test_scanned_pages_are_shown_and_the_text_of_the_others_is_read(tmp_path):
    body = joined_pdf(pdf("Typed words"), scan("A", "B"))
    with serving(opening("letter.pdf")) as server:
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL) as it:
            await work(it, await upload(it, "letter.pdf", body))
    for member in READERS:
        last = requests_of(server, member)[-1]
        assert len(pictures(last)) == 2, member
        assert "Typed words" in text_of(last), member
        assert "letter.pdf#page=3" in text_of(last), member


async def test_one_page_is_shown_by_its_number(tmp_path):
    with serving(opening("scan.pdf", page=6)) as server:
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL) as it:
            await work(it, await upload(it, "scan.pdf", scan(*"ABCDEF")))
    for member in READERS:
        last = requests_of(server, member)[-1]
        assert len(pictures(last)) == 1, member
        assert "page 6 of 6" in text_of(last), member


@pytest.mark.slow
async def test_without_a_model_that_sees_the_pages_that_were_not_read_are_counted(tmp_path):
    with serving(opening("scan.pdf")) as server:
        async with open_service(
            server.base_url, tmp_path, sandbox=LOCAL, models=blind(server.base_url)
        ) as it:
            await work(it, await upload(it, "scan.pdf", scan(*"ABC")))
    for member in READERS:
        shown = text_of(requests_of(server, member)[-1])
        assert "None of the 3 pages has text" in shown, member
        assert "does not see pictures" in shown, member


def message_with(content: bytes, text: str = "What does the chart show?") -> dict[str, Any]:
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    parts = [{"type": "text", "text": text}, {"type": "image", "image_url": url}]
    return {"messages": [{"role": "user", "content": parts}]}


async def files_of(it: Any, thread_id: str) -> list[str]:
    return [one["path"] for one in (await it.get(f"/api/threads/{thread_id}/files"))["files"]]


async def test_a_picture_in_a_message_is_an_upload_that_every_member_sees_and_opens(tmp_path):
    content = chart("red")
    name = f"picture-{hashlib.sha256(content).hexdigest()[:8]}.png"
    with serving(opening(name)) as server:
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL) as it:
            thread_id = await it.thread()
            await work(it, thread_id, **message_with(content))
            assert await files_of(it, thread_id) == [name, "sources/1.md"]
    for member in MEMBERS:
        assert all(content in pictures(request) for request in requests_of(server, member)), member
    for member in READERS:
        last = requests_of(server, member)[-1]
        assert len(pictures(last)) == 2, member
        assert name in text_of(last), member


async def test_the_same_bytes_are_one_item_whatever_way_they_came(tmp_path):
    content = chart("blue")
    script = {"coordinator": [reply("Blue."), reply("Still blue."), reply("And red.")]}
    with serving(script) as server:
        async with open_service(server.base_url, tmp_path) as it:
            thread_id = await upload(it, "chart.png", content)
            await work(it, thread_id, **message_with(content))
            await work(it, thread_id, **message_with(content))
            assert await files_of(it, thread_id) == ["chart.png"]
            await work(it, thread_id, **message_with(chart("red")))
            assert len(await files_of(it, thread_id)) == 2


async def test_a_picture_that_the_user_deleted_does_not_come_back(tmp_path):
    with serving({"coordinator": [reply("Red."), reply("Gone.")]}) as server:
        async with open_service(server.base_url, tmp_path) as it:
            thread_id = await it.thread()
            await work(it, thread_id, **message_with(chart("red")))
            (name,) = await files_of(it, thread_id)
            assert (await it.client.delete(f"/api/threads/{thread_id}/files/{name}")).status_code == 204
            await work(it, thread_id)
            assert await files_of(it, thread_id) == []


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,%%%", "data:image/png;base64,AAAA", "https://a.test/b.png"]
)
async def test_a_part_that_holds_no_picture_makes_no_file_and_ends_no_run(tmp_path, url):
    parts = [{"type": "text", "text": "Look."}, {"type": "image", "image_url": url}]
    with serving({"coordinator": [reply("I looked.")]}) as server:
        async with open_service(server.base_url, tmp_path) as it:
            thread_id = await it.thread()
            await work(it, thread_id, messages=[{"role": "user", "content": parts}])
            assert await files_of(it, thread_id) == []


@pytest.mark.parametrize("agent", ["", "manus"])
@pytest.mark.parametrize("lost", ["no room", "address", "no picture", "no base64"])
async def test_a_picture_that_is_not_stored_is_named_with_the_reason_to_every_member(tmp_path, lost, agent):
    address, data = "https://pictures.test/b.png?size=9", "data:image/png;base64,"
    huge = base64.b64encode(chart("red") + bytes(300_000)).decode()
    part, reason = {
        "no room": ({"image_url": data + huge}, "sandbox.disk_mb"),
        "address": ({"image_url": address}, address),
        "no picture": ({"image_url": f"{data}AAAA"}, "3 bytes"),
        "no base64": ({"image_url": f"{data}%%%"}, "Base64"),
    }[lost]
    content = [{"type": "text", "text": "Look."}, {"type": "image", **part}]
    script = {**opening("x.png"), "manus": [reply("Done.")]}
    with serving(script) as server:
        sandbox = {**LOCAL, "disk_mb": 1}
        async with open_service(server.base_url, tmp_path, sandbox=sandbox, team=ALL) as it:
            thread_id = await upload(it, "taken.bin", bytes(1_000_000))
            message = {"messages": [{"role": "user", "content": content}]}
            await work(it, thread_id, **message, **({"agent": agent} if agent else {}))
            assert await files_of(it, thread_id) == ["taken.bin"]
            first = len(server.requests)
            for member in ["manus"] if agent else ["coordinator", "planner", *MEMBERS]:
                assert reason in text_of(requests_of(server, member)[0]), member
            server.reset(script)
            await work(it, thread_id, **({"agent": agent} if agent else {}))
            assert len(server.requests) < first + 20
            assert "Not every picture" not in "".join(map(text_of, server.requests))


@pytest.mark.slow
@pytest.mark.parametrize("sees", [True, False])
async def test_the_member_that_answers_alone_sees_the_picture_once_or_says_that_it_does_not(tmp_path, sees):
    content = chart("green")
    with serving({"manus": [reply("Green.")]}) as server:
        endpoint = blind(server.base_url)
        endpoint["basic"]["capabilities"]["vision"] = sees
        team = {"members": ["manus"]}
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL, models=endpoint, team=team) as it:
            await work(it, await it.thread(), agent="manus", **message_with(content))
    (request,) = [one for one in server.requests if "messages" in one]
    assert pictures(request) == ([content] if sees else [])
    assert ("does not see pictures" in text_of(request)) is not sees


ENDED = {"status": "success", "result": "Seen."}


@pytest.mark.slow
@pytest.mark.parametrize("sees", [True, False])
async def test_the_browsers_agent_sees_and_opens_the_picture_or_says_that_it_does_not(tmp_path, sees):
    content = chart("purple")
    steps = plan(step("browser"), step("reporter"))
    script = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(steps))],
        "browser": [call("read_file", path="chart.png"), call("terminate", **ENDED)],
        "reporter": [reply("# Report\n\nDone.")],
    }
    with serving(script) as server:
        models = blind(server.base_url)
        models["basic"]["capabilities"]["vision"] = sees
        async with open_service(server.base_url, tmp_path, models=models, browser={"enabled": True}) as it:
            await work(it, await upload(it, "chart.png", content))
    first, second = [one for one in server.requests if "terminate" in str(one.get("tools"))]
    assert pictures(first) == ([content] if sees else [])
    assert pictures(second) == ([content] * 2 if sees else [])
    assert ("does not see pictures" in text_of(second)) is not sees


async def test_a_picture_that_is_crawled_is_an_item_that_later_members_open(tmp_path):
    content = chart("orange", (120, 80))
    name = f"pictures/sales-2026-{hashlib.sha256(content).hexdigest()[:8]}.png"
    async with open_site({"/sales%202026.png": Reply(content, "image/png")}) as site:
        script = opening(name)
        script["researcher"] = [call("crawl_tool", url=f"{site.url}/sales%202026.png"), reply("Read.")]
        with serving(script) as server:
            fetch = {"allow_private": ["127.0.0.0/8"]}
            async with open_service(server.base_url, tmp_path, sandbox=LOCAL, fetch=fetch) as it:
                thread_id = await it.thread()
                await work(it, thread_id)
                assert name in await files_of(it, thread_id)
    for member in MEMBERS:
        last = requests_of(server, member)[-1]
        assert pictures(last) == [content], member
        assert name in text_of(last), member


def bar_chart_page() -> Reply:
    body = "<h1>Sales of 2026</h1><div style='width:300px;height:200px;background:#06c'></div>"
    return Reply(f"<!doctype html><html><head><title>Sales</title></head><body>{body}</body></html>")


def browser_script(url: str, *actions: dict[str, Any], **others: Any) -> dict[str, Any]:
    members = [step(name) for name in ("browser", *others)]
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(*members, step("reporter"))))],
        "browser": [call("browser_use", action="go_to_url", url=url), *actions, call("terminate", **ENDED)],
        "reporter": [reply("# Report\n\nDone.")],
        **others,
    }


async def browse(
    tmp_path, script, site, *, sees: bool = True, disk_mb: int = 100
) -> tuple[list[Any], list[str]]:
    """The requests, and the paths of the thread's files."""
    with serving(script) as server:
        models = blind(server.base_url)
        models["basic"]["capabilities"]["vision"] = sees
        settings = {
            "browser": {"enabled": True},
            "fetch": {"allow_private": ["127.0.0.0/8", "::1/128"]},
            "sandbox": {**LOCAL, "disk_mb": disk_mb},
        }
        async with open_service(server.base_url, tmp_path, models=models, **settings) as it:
            thread_id = await upload(it, "notes.txt", b"x" * 990_000 if disk_mb == 1 else b"x")
            await work(it, thread_id)
            return server, await files_of(it, thread_id)


@pytest.mark.parametrize("sees", [True, False])
async def test_the_last_view_of_the_browser_is_an_item_that_the_reporter_sees_and_others_open(tmp_path, sees):
    async with open_site({"/sales": bar_chart_page()}) as site:
        url = f"{site.url}/sales"
        coder = [call("list_files"), reply("Listed.")]
        server, files = await browse(tmp_path, browser_script(url, coder=coder), site, sees=sees)
        (name,) = [path for path in files if path.startswith("pictures/")]
        script = browser_script(url, coder=[call("read_file", path=name), reply("Read.")])
        server, files = await browse(tmp_path / "again", script, site, sees=sees)
    assert name in files, "the same page has the same name"
    listed = f"{name} (screenshot, Sales, {url}, step 1"
    reporter, (_, coder) = requests_of(server, "reporter")[0], requests_of(server, "coder")
    for request in (reporter, coder):
        assert listed in text_of(request)
        assert len(pictures(request)) == int(sees)
        assert (f"{name} is a picture (JPEG" in text_of(request)) is not sees
    if sees:
        shown = Image.open(io.BytesIO(pictures(reporter)[0])).convert("RGB")
        assert shown.size[0] >= 800
        colors = {color for _, color in shown.getcolors(shown.size[0] * shown.size[1])}
        assert min(abs(r) + abs(g - 102) + abs(b - 204) for r, g, b in colors) < 30


@pytest.mark.slow
async def test_a_screenshot_that_is_asked_for_is_an_item_and_the_many_views_between_are_none(tmp_path):
    async with open_site({"/a": bar_chart_page(), "/b": Reply("<title>B</title><p>Second</p>")}) as site:
        actions = [
            call("browser_use", action="take_screenshot"),
            call("browser_use", action="wait", seconds=0),
            call("browser_use", action="go_to_url", url=f"{site.url}/b"),
            call("browser_use", action="scroll_down"),
        ]
        server, files = await browse(tmp_path, browser_script(f"{site.url}/a", *actions), site)
    stored = [path for path in files if path.startswith("pictures/")]
    assert sorted(path.split("-")[0] for path in stored) == ["pictures/B", "pictures/Sales"]
    assert len(pictures(requests_of(server, "reporter")[0])) == 2


@pytest.mark.slow
async def test_without_room_the_screenshot_is_refused_with_the_reason_and_the_step_is_done(tmp_path):
    async with open_site({"/a": Reply(f"<title>A</title>{noisy_picture()}")}) as site:
        script = browser_script(f"{site.url}/a", call("browser_use", action="take_screenshot"))
        server, files = await browse(tmp_path, script, site, disk_mb=1)
    assert not [path for path in files if path.startswith("pictures/")]
    last = [one for one in server.requests if "terminate" in str(one.get("tools"))][-1]
    assert "sandbox.disk_mb" in text_of(last)
    assert "not stored as a" in text_of(requests_of(server, "reporter")[0])


def noisy_picture() -> str:
    stream = io.BytesIO()
    Image.effect_noise((800, 500), 100).save(stream, "PNG")
    return f"<img src='data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}'>"


def message_at(url: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": "What does it show?"}, {"type": "image", "image_url": url}]
    return {"messages": [{"role": "user", "content": parts}]}


def image_urls(server: Any) -> list[str]:
    parts = [
        part
        for request in server.requests
        for one in request.get("messages", ())
        if isinstance(one["content"], list)
        for part in one["content"]
    ]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


LOOPBACK = {"allow_private": ["127.0.0.0/8"]}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/sales%202026.png", "/moved"])
async def test_a_picture_at_an_address_in_a_message_is_fetched_and_stored(tmp_path, path):
    content = chart("navy")
    name = f"{'sales-2026' if 'sales' in path else 'moved'}-{hashlib.sha256(content).hexdigest()[:8]}.png"
    # The content decides what it is, not the type that the server names.
    replies = {"/sales%202026.png": Reply(content, "application/octet-stream")}
    async with open_site({**replies, "/moved": redirect("/sales%202026.png")}) as site:
        with serving({"coordinator": [reply("Navy.")]}) as server:
            async with open_service(server.base_url, tmp_path, sandbox=LOCAL, fetch=LOOPBACK) as it:
                thread_id = await it.thread()
                await work(it, thread_id, **message_at(f"{site.url}{path}"))
                assert await files_of(it, thread_id) == [name]
                server.reset({"coordinator": [reply("As I said.")]})
                await work(it, thread_id)
    assert [pictures(one) for one in server.requests] == [[content]], "it is part of the conversation"
    assert all(url.startswith("data:") for url in image_urls(server))


async def test_each_member_is_shown_the_picture_at_an_address_and_no_endpoint_the_address(tmp_path):
    content = chart("teal")
    name = f"b-{hashlib.sha256(content).hexdigest()[:8]}.png"
    async with open_site({"/b.png": Reply(content, "image/png")}) as site:
        with serving({**opening(name), "manus": [reply("Teal.")]}) as server:
            how = {"sandbox": LOCAL, "fetch": LOOPBACK, "team": ALL}
            async with open_service(server.base_url, tmp_path, **how) as it:
                await work(it, await it.thread(), **message_at(f"{site.url}/b.png"))
                await work(it, await it.thread(), agent="manus", **message_at(f"{site.url}/b.png"))
    for member in ("coordinator", *MEMBERS):
        assert all(content in pictures(request) for request in requests_of(server, member)), member
    assert pictures(requests_of(server, "manus")[0]) == [content], "once"
    assert all(url.startswith("data:") for url in image_urls(server))


async def test_a_member_that_does_not_see_reads_that_it_does_not_see_the_picture_at_an_address(tmp_path):
    content = chart("teal")
    name = f"b-{hashlib.sha256(content).hexdigest()[:8]}.png"
    async with open_site({"/b.png": Reply(content, "image/png")}) as site:
        with serving(opening(name)) as server:
            how = {"sandbox": LOCAL, "fetch": LOOPBACK, "models": blind(server.base_url)}
            async with open_service(server.base_url, tmp_path, **how) as it:
                await work(it, await it.thread(), **message_at(f"{site.url}/b.png"))
    assert image_urls(server) == []
    for member in MEMBERS:
        assert f"{name} is a picture (PNG," in text_of(requests_of(server, member)[0]), member


@pytest.mark.parametrize(
    ("path", "fetch", "reason"),
    [
        ("/gone.png", LOOPBACK, "404"),
        ("/huge.png", {**LOOPBACK, "max_bytes": 10_000}, "10,000"),
        ("/page", LOOPBACK, "text/html"),
        ("/fake.png", LOOPBACK, "image/png"),
        ("/b.png", {}, "public"),
        ("/b.png", {**LOOPBACK, "jina": "always"}, "fetch.jina"),
    ],
    ids=["gone", "too large", "a page", "no picture", "private", "through Jina"],
)
@pytest.mark.parametrize("agent", ["", "manus"])
async def test_a_picture_that_cannot_be_fetched_is_named_with_the_reason_to_every_member(
    tmp_path, path, fetch, reason, agent
):
    replies = {
        "/huge.png": Reply(chart("red") + bytes(20_000), "image/png"),
        "/page": Reply("<title>A page</title><p>No picture</p>"),
        "/fake.png": Reply(b"\0\1\2 no picture", "image/png"),
        "/b.png": Reply(chart("red"), "image/png"),
    }
    async with open_site(replies) as site:
        with serving({**opening("x.png"), "manus": [reply("Done.")]}) as server:
            how = {"sandbox": LOCAL, "fetch": fetch, "team": ALL}
            async with open_service(server.base_url, tmp_path, **how) as it:
                thread_id = await it.thread()
                extra = {"agent": agent} if agent else {}
                await work(it, thread_id, **message_at(f"{site.url}{path}"), **extra)
                assert await files_of(it, thread_id) == []
    for member in ["manus"] if agent else ["coordinator", "planner", *MEMBERS]:
        shown = text_of(requests_of(server, member)[0])
        assert f"{site.url}{path}: " in shown, member
        assert reason in shown, member
    assert image_urls(server) == []


@pytest.mark.slow
@pytest.mark.parametrize("member", ["researcher", "coder", "file_manager"])
async def test_a_picture_of_a_page_that_was_read_is_opened_by_its_address(tmp_path, member):
    content = chart("orange", (300, 250))
    async with open_site({}) as site:
        url = f"{site.url}/charts/sales.png"
        site.pages["/charts/sales.png"] = Reply(content, "image/png")
        prose = "<p>" + "The sales of the year are shown in a chart below, by month and region. " * 9 + "</p>"
        page = f"<title>Sales</title><article><h1>Sales</h1>{prose}<img src='{url}' alt='Chart'></article>"
        site.pages["/page"] = Reply(page)
        reader = READERS[member]
        opened = [call(reader, path=url), call(reader, path=f"{site.url}/secret?what=42"), reply("Seen.")]
        first = [call("crawl_tool", url=f"{site.url}/page")]
        script = opening("x.png")
        script["researcher"] = [*first, *(opened if member == "researcher" else [reply("Read.")])]
        if member != "researcher":
            script[member] = opened
        with serving(script) as server:
            fetch = {**LOOPBACK, "images": False}
            async with open_service(server.base_url, tmp_path, sandbox=LOCAL, fetch=fetch) as it:
                thread_id = await it.thread()
                await work(it, thread_id)
                name = f"pictures/sales-{hashlib.sha256(content).hexdigest()[:8]}.png"
                assert name in await files_of(it, thread_id)
    last = requests_of(server, member)[-1]
    assert content in pictures(last)
    assert "has read names" in text_of(last)
    assert not [path for _, path, _ in site.requests if "secret" in path], "what no page names is not fetched"
    assert f"{name} (figure, {url}" in text_of(requests_of(server, "reporter")[0])


def small(*replies: Any, plan_of: str = "coder") -> dict[str, Any]:
    """A small model's prompts name no role, except for the planner and small talk."""
    steps = [{"agent_name": plan_of, "title": "c", "description": "d"}]
    planned = {"thought": "t", "title": "P", "steps": steps}
    return {
        "other": list(replies),
        "planner": [reply(json.dumps(planned))],
        "coordinator": [reply("Hello!")],
    }


def sorted_as(kind: str, language: str = "English") -> dict[str, Any]:
    return reply(json.dumps({"kind": kind, "language": language}))


async def ask_small_team(tmp_path, script, *, how: str, seer: str = "", text: str = "What does it show?"):
    """The answer, and the servers of the small model and of the one that sees."""
    with serving({"other": [reply("Two bars: 3 and 7 apples.")]}) as other, serving(script) as server:
        models = blind(server.base_url)
        models["basic"] |= {"profile": "compact", "context_tokens": 8_000}
        models["basic"]["capabilities"] |= {"grammar": True, "tools": False, "json_schema": False}
        if seer:
            models["vision"] = {**blind(other.base_url)["basic"], "model": "seer", "capabilities": {}}
        async with open_service(server.base_url, tmp_path, sandbox=LOCAL, models=models) as it:
            if how == "upload":
                thread_id, body = await upload(it, "chart.png", chart()), {}
                body = {"messages": [{"role": "user", "content": text}]}
            else:
                thread_id, body = await it.thread(), message_with(chart(), text)
            run = await it.run(thread_id=thread_id, **body)
            await it.events_of(run["run_id"])
            done = await it.get(f"/api/runs/{run['run_id']}")
            assert done["status"] == "completed"
            again = await it.run(thread_id=thread_id, messages=[{"role": "user", "content": "Thanks!"}])
            await it.events_of(again["run_id"])
            frames = (await it.get(f"/api/threads/{thread_id}"))["messages"]
        return frames, server, other


def answers_of(messages: list[dict[str, Any]]) -> list[str]:
    return [str(one["content"]) for one in messages if one["role"] == "assistant"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["upload", "message"])
@pytest.mark.parametrize(
    ("replies", "member"),
    [
        ((sorted_as("answer"), reply('{"changes": false}'), reply("I cannot tell.")), "the coordinator"),
        ((sorted_as("chat"),), "small talk"),
        ((sorted_as("coder"), reply("print(4)"), reply("It is 4.")), "the reporter"),
    ],
    ids=["answer", "chat", "coder"],
)
async def test_a_small_team_without_a_model_that_sees_says_so_once(tmp_path, how, replies, member):
    script = small(*replies, sorted_as("chat"))
    messages, server, _ = await ask_small_team(tmp_path, script, how=how)
    first, *others = [one for one in answers_of(messages) if "Code run" not in one and "thought" not in one]
    whole = "\n".join([first, *others])
    assert whole.count("models.vision") == 1, member
    assert (".png" in whole, image_urls(server)) == (True, [])


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("upload", "How many apples are in chart.png?"),
        ("message", "What does it show?"),
        ("upload", "What does it show?"),
    ],
)
async def test_a_small_team_hands_the_picture_to_the_model_that_sees(tmp_path, how, text):
    script = small(sorted_as("answer"), reply("Three and seven."), sorted_as("chat"))
    messages, server, seer = await ask_small_team(tmp_path, script, how=how, seer="seer", text=text)
    assert [len(pictures(one)) for one in seer.requests if "messages" in one] == [1], "asked for it once"
    asked = [one for one in server.requests if "Two bars: 3 and 7 apples." in text_of(one)]
    assert len(asked) >= 2, "to sort the request, and to answer it"
    assert image_urls(server) == []
    assert "Three and seven." in answers_of(messages)[0]
    assert "models.vision" not in "".join(answers_of(messages))


async def test_each_member_of_a_small_team_reads_what_the_picture_shows(tmp_path):
    script = small(sorted_as("coder"), reply("print(3 + 7)"), reply("It is 10."))
    messages, server, _ = await ask_small_team(
        tmp_path, script, how="upload", seer="seer", text="Add the numbers of the chart."
    )
    told = ["Two bars: 3 and 7 apples." in text_of(one) for one in server.requests if "messages" in one]
    assert told[:4] == [True] * 4, "coordinator, planner, coder and reporter"
    assert "10" in "".join(answers_of(messages))

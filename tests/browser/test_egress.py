"""A page tries all of Chromium's ways to connect: no internal server receives a request."""

from contextlib import AsyncExitStack

import pytest

from maniple.browser import Browser, open_browser
from maniple.config import BrowserSettings, FetchSettings
from maniple.egress import AddressGuard
from maniple.errors import BrowserError, FetchError
from tests.crawler.web import Canary, Reply, Site, open_canary, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

# Each of them is a page of its own; {inner} is the canary, {go} redirects there.
ATTEMPTS = {
    "image": '<img src="{inner}/i.png"><img src="{go}">',
    "frame": '<iframe src="{inner}/"></iframe><iframe src="{go}"></iframe>',
    "style and font": '<link rel=stylesheet href="{inner}/s.css"><style>@import url("{inner}/t.css");'
    "@font-face {{ font-family: f; src: url({inner}/f.woff) }} body {{ font-family: f }}</style>text",
    "script": '<script src="{inner}/s.js"></script><script type=module>import "{inner}/m.js"</script>',
    "hints": '<link rel=preconnect href="{inner}"><link rel=dns-prefetch href="//localhost:{port}">'
    '<link rel=prefetch href="{inner}/p"><link rel=preload as=fetch href="{inner}/q">'
    '<link rel=icon href="{inner}/f.ico">',
    "speculation": '<script type=speculationrules>{{"prefetch": [{{"source": "list", "urls": ["{inner}/"]}}],'
    '"prerender": [{{"source": "list", "urls": ["{go}"]}}]}}</script>',
    "media": '<video src="{inner}/v.mp4" autoplay></video><audio src="{go}" autoplay></audio>'
    '<object data="{inner}/o"></object><embed src="{inner}/e">',
    "fetch": "<script>for (const url of ['{inner}/', '{go}', 'http://localhost:{port}/', 'http://[::1]:{port}/',"
    "'http://2130706433:{port}/', 'http://0.0.0.0:{port}/', 'http://[::ffff:7f00:1]:{port}/'])"
    "fetch(url, {{mode: 'no-cors'}}).catch(() => 0)</script>",
    "post": "<script>fetch('{inner}/', {{method: 'POST', body: 'x', mode: 'no-cors'}}).catch(() => 0);"
    "navigator.sendBeacon('{inner}/beacon', 'x'); fetch('{inner}/', {{keepalive: true}}).catch(() => 0);"
    "const request = new XMLHttpRequest(); request.open('PUT', '{inner}/'); request.send('x')</script>",
    "sockets": "<script>new WebSocket('ws://127.0.0.1:{port}/'); new WebSocket('ws://localhost:{port}/');"
    "new WebSocket('ws://{site}/go'); new EventSource('{inner}/')</script>",
    "workers": "<script>const body = \"fetch('{inner}/', {{mode: 'no-cors'}}); new WebSocket('ws://127.0.0.1:{port}/')\";"
    "const url = URL.createObjectURL(new Blob([body])); new Worker(url); new SharedWorker(url);"
    "navigator.serviceWorker?.register('/worker.js').catch(() => 0)</script>",
    "calls": "<script>const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}},"
    "{{urls: ['turn:127.0.0.1:{port}?transport=udp', 'turn:127.0.0.1:{port}?transport=tcp'],"
    "username: 'u', credential: 'c'}}]}}); peer.createDataChannel('x');"
    "peer.createOffer().then(offer => peer.setLocalDescription(offer))</script>",
    "transport": "<script>new WebTransport('https://127.0.0.1:{port}/').ready.catch(() => 0)</script>",
    "popups": "<script>open('{inner}/'); open('{go}'); open('about:blank').location = '{inner}/';"
    "open('javascript:fetch(\"{inner}/\")')</script>"
    "<a id=a href='{inner}/' target=_blank ping='{inner}/ping'>x</a><script>a.click()</script>",
    "forms": "<form id=f action='{inner}/' method=post target=_blank><input name=a value=b></form>"
    "<script>f.submit()</script>",
    "refresh": '<meta http-equiv=refresh content="0;url={inner}/">',
    "refresh to a redirect": '<meta http-equiv=refresh content="0;url={go}">',
    "location": "<script>location = '{inner}/'</script>",
    "files": '<iframe src="file:///etc/passwd"></iframe><img src="file:///etc/passwd">'
    "<script>open('file:///etc/passwd'); location = 'file:///etc/passwd'</script>",
}


async def attempted(attempt: str, browser: Browser, site: Site, canary: Canary) -> str:
    """What the browser gives back for a page with that attempt on it."""
    inner = f"http://127.0.0.1:{canary.port}"
    host = site.url.removeprefix("http://")
    page = attempt.format(inner=inner, port=canary.port, go=f"{site.url}/go", site=host)
    site.pages |= {
        "/": Reply(f"<title>Page</title>{page}"),
        "/go": redirect(f"{inner}/redirected", 307),
        "/worker.js": Reply(f"fetch('{inner}/')", content_type="text/javascript"),
    }
    try:
        return (await browser.read(site.url, thread="t")).text
    except BrowserError as error:
        return str(error)
    finally:
        assert ("GET", "/") in [(method, path) for method, path, _ in site.requests]


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
async def test_no_page_reaches_an_internal_address(
    attempt: str, browser: Browser, site: Site, canary: Canary
) -> None:
    seen = await attempted(attempt, browser, site, canary)
    assert "canary" not in seen
    assert "root:" not in seen
    assert canary.hits == []


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1", "::ffff:7f00:1"])
async def test_the_same_pages_do_reach_it_when_it_is_opened_on_purpose(site: Site) -> None:
    guard = AddressGuard(FetchSettings(allow_private=("127.0.0.0/8",)))
    # Two of these speak UDP, which stays shut; files are nowhere; nothing is speculated through a proxy.
    left_out = {"calls", "transport", "files", "speculation"}
    attempts = {name: attempt for name, attempt in ATTEMPTS.items() if name not in left_out}
    async with (
        open_browser(BrowserSettings(timeout_seconds=20), guard.resolve) as browser,
        AsyncExitStack() as stack,
    ):
        canaries = {name: await stack.enter_async_context(open_canary()) for name in attempts}
        for name, attempt in attempts.items():
            await attempted(attempt, browser, site, canaries[name])
    assert [name for name, canary in canaries.items() if not canary.hits] == []


async def test_a_redirect_to_an_internal_address_is_an_error(
    browser: Browser, site: Site, canary: Canary
) -> None:
    site.pages["/go"] = redirect(f"http://127.0.0.1:{canary.port}/")
    with pytest.raises(BrowserError, match="not public"):
        await browser.read(f"{site.url}/go", thread="t")
    assert canary.hits == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://[::1]:{port}/",
        "http://x@127.0.0.1:{port}/",
        "http://127.0.0.1:22/",
        "file:///etc/passwd",
        "view-source:http://127.0.0.1:{port}/",
        "chrome://version",
        "javascript:1",
        "data:text/html,hi",
        "http://[::1",
        "http:///",
        "",
    ],
)
async def test_what_is_no_public_page_is_not_opened(url: str, browser: Browser, canary: Canary) -> None:
    with pytest.raises(FetchError):
        await browser.read(url.format(port=canary.port), thread="t")
    assert canary.hits == []

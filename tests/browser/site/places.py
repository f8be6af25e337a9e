"""The same few controls in places of many kinds: a plain page, a frame, shadow roots, a dialog, …

`PLACES` maps the kind to its pages; `{other}` in a page is the address of a second site, which has them, too.
"""

import asyncio
from collections.abc import Mapping

from tests.crawler.web import Reply, Send, redirect

CONTROLS = """<h1>Order</h1>
<p>Choose what you like from our small shop. We deliver on the same day, and the way back is free.</p>
<button onclick="said.textContent = 'pressed ' + (window.n = (window.n ?? 0) + 1)">Press me</button>
<output id=said></output>
<input placeholder="Your name" oninput="heard.textContent = 'heard ' + this.value"><output id=heard></output>
<select aria-label=Colour onchange="chosen.textContent = 'chose ' + this.value">
<option value=r>Red</option><option value=g>Green</option></select><output id=chosen></output>
<div style="height: 3000px"></div><p>Far below stands the lighthouse.</p>"""

# `said` and its like are names of the document: in a shadow root they are looked up there.
_SHADOW = """<div id=outer></div><script>
const open = (host, html) => { host.attachShadow({mode: 'open'}).innerHTML = html; return host.shadowRoot; };
const middle = open(outer, '<section><div id=inner></div></section>');
const inner = open(middle.getElementById('inner'), CONTROLS);
window.said = inner.getElementById('said'); window.heard = inner.getElementById('heard');
window.chosen = inner.getElementById('chosen');
</script>"""


def _text(html: str) -> str:
    """HTML as a literal in a script."""
    return "`" + html.replace("`", "\\`").replace("</script>", "<\\/script>") + "`"


async def _late(send: Send) -> None:
    await asyncio.sleep(0.3)  # a server that is slow, not a test that waits
    await send(f"<title>Slow</title>{CONTROLS}".encode())


PLACES: Mapping[str, Mapping[str, Reply]] = {
    "plain page": {"/": Reply(f"<title>Plain</title>{CONTROLS}")},
    "iframe of another origin": {
        "/": Reply("<title>Outer</title><iframe src='{other}/inner' width=1000 height=700></iframe>"),
        "/inner": Reply(CONTROLS),
    },
    "nested shadow roots": {
        "/": Reply(f"<title>Shadow</title><script>const CONTROLS = {_text(CONTROLS)}</script>{_SHADOW}")
    },
    "dialog": {
        "/": Reply(
            f"<title>Dialog</title><button>Behind</button><dialog id=d>{CONTROLS}</dialog>"
            "<script>d.showModal()</script>"
        )
    },
    "lazy list": {
        "/": Reply(
            f"<title>Lazy</title>{CONTROLS}<ul id=list></ul><p id=end>end</p><script>let n = 0;"
            "new IntersectionObserver(seen => {"
            "if (seen[0].isIntersecting && n < 30) for (let i = 0; i < 10; i++)"
            " list.append(Object.assign(document.createElement('li'), {textContent: 'item ' + ++n})) })"
            ".observe(end)</script>"
        )
    },
    "infinite scroll": {
        "/": Reply(
            f"<title>Infinite</title>{CONTROLS}<script>onscroll = () => {{"
            "if (scrollY + innerHeight > document.body.scrollHeight - 50)"
            "fetch('/more').then(answer => answer.text())"
            ".then(html => document.body.insertAdjacentHTML('beforeend', html)) }</script>"
        ),
        "/more": Reply("<p style='height: 500px'>and more"),
    },
    "app that renders anew on every click": {
        "/": Reply(
            f"<title>App</title><div id=app></div><script>const html = {_text(CONTROLS)};"
            "const outputs = ['said', 'heard', 'chosen'];"
            "const render = () => { const held = outputs.map(id => window[id]?.textContent);"
            "const name = app.querySelector('input')?.value ?? '';"
            "app.innerHTML = html; app.querySelector('input').value = name;"
            "outputs.forEach((id, i) => { document.getElementById(id).textContent = held[i] ?? '' }) };"
            "render(); addEventListener('click', () => setTimeout(render))</script>"
        )
    },
    "slow server": {"/": Reply(stream=_late)},
    "3,000 controls": {
        "/": Reply(
            f"<title>Many</title>{CONTROLS}" + "".join(f"<button>Number {n}</button>" for n in range(3_000))
        )
    },
    "right-to-left and CJK text": {
        "/": Reply(f"<html dir=rtl lang=ar><title>שלום 世界</title><p>مرحبا 你好 こんにちは</p>{CONTROLS}")
    },
}
"""Where all of the controls are, so that every action can do what it is for."""

ODD: Mapping[str, Mapping[str, Reply]] = {
    "dead server": {},
    "redirect loop": {"/": redirect("/")},
    "canvas": {"/": Reply("<title>Canvas</title><canvas width=800 height=600></canvas>")},
    "PDF": {"/": Reply(b"%PDF-1.4\n%%EOF", content_type="application/pdf")},
    "download": {
        "/": Reply(
            b"PK",
            content_type="application/zip",
            headers=(("Content-Disposition", "attachment; filename=a.zip"),),
        )
    },
    "beforeunload": {
        "/": Reply(
            "<title>Stay</title><script>onbeforeunload = event => event.preventDefault()</script><p>Stay"
        )
    },
    "alert storm": {
        "/": Reply("<title>Storm</title><script>setInterval(() => alert('again'), 1)</script><p>Loud")
    },
    "empty page": {"/": Reply("")},
}
"""A page on which some actions have no target: each reports that."""

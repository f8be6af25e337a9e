"""Words and controls as they are drawn: in slots, without a box of their own, in closed shadow roots."""

import re

import pytest

from tests.browser.looking.site import Site, named, shown

pytestmark = pytest.mark.anyio

_HOST = (
    "<x-box>{}</x-box><script>"
    "document.querySelector('x-box').attachShadow({{mode: 'open'}}).innerHTML = `{}`</script>"
)


def _host(light: str, shadow: str) -> str:
    return _HOST.format(light, shadow)


DRAWN = {
    "<button><span style='display:contents'>Save all</span></button>": "button: Save all",
    "<button><slot>Save all</slot></button>": "button: Save all",
    "<a href=/x style='display:contents'>Save all</a>": "link: Save all",
    "<div role=button style='display:contents'><i>Save all</i></div>": "button: Save all",
    "<label><b style='display:contents'>Save all</b><input type=radio></label>": "input radio: Save all",
    _host("Save all", "<button><slot></slot></button>"): "button: Save all",
    _host("<b>Save</b> all", "<button><slot></slot></button>"): "button: Save all",
    _host("", "<button><slot>Save all</slot></button>"): "button: Save all",
    _host("<i slot=name>Save all</i>", "<button><slot name=name></slot></button>"): "button: Save all",
    _host("Save all", "<a href=/x><em><slot></slot></em></a>"): "link: Save all",
    _host(
        "Save all", "<label><input type=checkbox style=opacity:0><slot></slot></label>"
    ): "input checkbox: Save all",
    _host("Save all", "<div role=tab tabindex=0><slot></slot></div>"): "tab: Save all",
    _host(
        "Save all", "<style>:host{display:contents}</style><button><slot></slot></button>"
    ): "button: Save all",
}


@pytest.mark.parametrize("html", DRAWN)
async def test_a_control_has_the_words_that_are_drawn_in_it(html: str, site: Site) -> None:
    assert shown(await site.show(html)) == [DRAWN[html]]


async def test_words_pass_through_the_slots_of_several_hosts(site: Site) -> None:
    look = await site.show(
        "<x-out>Save all</x-out><script>"
        "const open = (host, html) => host.attachShadow({mode: 'open'}).innerHTML = html;"
        "const out = document.querySelector('x-out'); open(out, '<x-in><slot></slot></x-in>');"
        "open(out.shadowRoot.querySelector('x-in'), '<button><slot></slot></button>')</script>"
    )
    assert shown(look) == ["button: Save all"]


async def test_a_host_that_listens_is_not_listed_beside_the_control_in_it(site: Site) -> None:
    html = _host("Save all", "<button><slot></slot></button>")
    look = await site.show(html.replace("<x-box>", "<x-box onclick='document.title = 1' tabindex=-1>"))
    assert shown(look) == ["button: Save all"]


@pytest.mark.parametrize("html", [_host("Save all", "<button><slot></slot></button>"), next(iter(DRAWN))])
async def test_slotted_words_under_something_else_are_no_control(html: str, site: Site) -> None:
    look = await site.show(f"{html}<div style='position:fixed;inset:0;background:#fff'></div>")
    assert look.elements == ()


@pytest.mark.parametrize("style", ["display:contents;visibility:hidden", "visibility:hidden", "display:none"])
async def test_hidden_words_are_not_read(style: str, site: Site) -> None:
    look = await site.show(
        f"<p style='{style}'>Secret <b style='visibility:visible'>bold</b></p>"
        f"<button>Send<span style='{style}'> secretly</span></button>"
    )
    assert "ecret" not in look.text
    assert shown(look) == ["button: Send"]


CLOSED = {
    "scripted": "<x-box aria-label=Vault></x-box><script>document.querySelector('x-box')"
    ".attachShadow({mode: 'closed'}).innerHTML = '<button>Inner</button>'</script>",
    "of an ordinary element": "<div aria-label=Vault></div><script>document.querySelector('div')"
    ".attachShadow({mode: 'closed'}).innerHTML = '<button>Inner</button>'</script>",
    "in the HTML": "<x-box aria-label=Vault><template shadowrootmode=closed><button>Inner</button></template>"
    "</x-box>",
}


@pytest.mark.parametrize("kind", CLOSED)
async def test_a_closed_shadow_root_is_reported_as_closed(kind: str, site: Site) -> None:
    look = await site.show(CLOSED[kind])
    assert re.search(r"\[0\]<(x-box|div) closed-shadow-root>Vault</", look.text)
    assert "cannot be read" in look.text
    assert named(look, "Vault").box is not None


async def test_an_empty_element_and_an_open_root_are_not_closed(site: Site) -> None:
    look = await site.show(
        "<x-empty></x-empty><x-rule style='display:block;height:9px;background:red'></x-rule>"
        "<style>x-dot::before { content: '*' }</style><x-dot></x-dot>" + _host("", "<p>Words</p>")
    )
    assert look.elements == ()
    assert "closed" not in look.text


async def test_an_empty_field_that_is_drawn_as_its_label_is_listed(site: Site) -> None:
    field = "<input id=f style='opacity:0;width:200px'>"
    label = "<label for=f style='position:absolute;left:2px;top:2px'>City</label>"
    assert shown(await site.show(f"<div style='position:relative'>{field}{label}</div>")) == ["input: City"]
    assert (await site.show(field)).elements == ()

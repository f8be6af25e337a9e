import pytest

from tests.browser.looking.site import Site, named, shown

pytestmark = pytest.mark.anyio

FRAME = "<iframe src=http://other.test/ style='width:300px;height:100px;border:5px solid'></iframe>"


async def test_frames_of_other_sites_are_seen_in_their_place_and_can_be_acted_on(site: Site) -> None:
    inner = "<button onclick='textContent = `Done`'>Pay</button>"
    look = await site.show(f"<p>Before</p>{FRAME}<p>After</p>", other=inner)
    assert look.text.splitlines() == ["Before", f"[{named(look, 'Pay').index}]<button>Pay</button>", "After"]
    await (await site.find("Pay")).click()
    assert shown(await site.look()) == ["button: Done"]


async def test_frames_in_frames_are_seen(site: Site) -> None:
    third = "<iframe src=http://third.test/></iframe>"
    look = await site.show(FRAME, other=third, third="<button>Deep</button>")
    assert shown(look) == ["button: Deep"]


async def test_where_a_control_is_counts_the_frame_that_it_is_in(site: Site) -> None:
    style = "<style>body{margin:0}</style>"
    frame = FRAME.replace("style='", "style='position:absolute;left:640px;top:400px;")
    button = f"{style}<button style='position:absolute;left:0;top:0;width:64px;height:40px'>Pay</button>"
    look = await site.show(style + frame, other=button)
    box = named(look, "Pay").box
    assert box == pytest.approx((645 / 1280, 405 / 800, 709 / 1280, 445 / 800))


async def test_what_is_covered_of_a_frame_is_not_offered(site: Site) -> None:
    cover = "<div style='position:absolute;left:0;top:0;width:170px;height:130px;background:#fff'></div>"
    row = "<button style='position:absolute;left:{}px;top:20px'>{}</button>"
    look = await site.show(FRAME + cover, other=row.format(20, "Left") + row.format(220, "Right"))
    assert shown(look) == ["button: Right"]


async def test_a_frame_that_does_not_answer_leaves_the_page_usable(site: Site) -> None:
    await site.show("<button>Here</button><iframe id=f src=http://other.test/></iframe>", other="<p>Hi</p>")
    await site.tab.evaluate("f.remove()")
    assert shown(await site.look()) == ["button: Here"]


async def test_nested_shadow_roots_and_their_slots_are_seen(site: Site) -> None:
    script = """
        const outer = host.attachShadow({mode: 'open'});
        outer.innerHTML = '<button>First</button><div id=inner></div><slot></slot>';
        outer.getElementById('inner').attachShadow({mode: 'open'}).innerHTML =
            '<div id=d>Second</div><button aria-labelledby=d>x</button>';
        outer.getElementById('inner').shadowRoot.getElementById('d').addEventListener('click', () => 1);
    """
    look = await site.show(f"<div id=host><button>Last</button></div><script>{script}</script>")
    assert shown(look) == ["button: First", "div: Second", "button: Second", "button: Last"]
    assert await (await site.find("Last")).inner_text() == "Last"


async def test_behind_a_modal_dialog_nothing_is_offered(site: Site) -> None:
    dialog = "<dialog id=d><p>Sure?</p><button>Yes</button></dialog><script>d.showModal()</script>"
    behind = "<button>Behind</button><div style=height:1500px></div><button>Below</button>"
    look = await site.show(behind + dialog)
    assert shown(look) == ["button: Yes"]
    assert "Sure?" in look.text


async def test_behind_a_window_that_covers_everything_nothing_is_offered(site: Site) -> None:
    window = "<div style='position:fixed;inset:0;background:#0008'><button>Close</button></div>"
    look = await site.show(
        f"<button>Behind</button><div style=height:1500px></div><button>Below</button>{window}"
    )
    assert shown(look) == ["button: Close"]


async def test_a_bar_that_is_pinned_to_an_edge_hides_nothing_else(site: Site) -> None:
    bar = "<div style='position:fixed;bottom:0;width:100%;height:40px'><button>Accept</button></div>"
    look = await site.show(f"{bar}<button>Read</button>")
    assert set(shown(look)) == {"button: Accept", "button: Read"}

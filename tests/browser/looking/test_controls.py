import pytest

from tests.browser.looking.site import Site, named, shown

pytestmark = pytest.mark.anyio

KINDS = {
    "<button>Send</button>": "<button>Send</button>",
    "<a href=/x>Home</a>": "<link>Home</link>",
    "<label>Name <input value=Ada></label>": '<input value="Ada">Name</input>',
    "<input type=email placeholder=you@example.com>": '<input email placeholder="you@example.com"></input>',
    "<label>Key <input type=password value=hunter2></label>": "<input password value=(hidden)>Key</input>",
    "<textarea aria-label=Note>two\nlines</textarea>": '<textarea value="two lines">Note</textarea>',
    "<label>Day <input type=date value=2026-11-22></label>": '<input date value="2026-11-22">Day</input>',
    "<label>Ink <input type=color value='#ff0000'></label>": '<input color value="#ff0000">Ink</input>',
    "<label>Age <input type=range max=9 value=3></label>": '<input range value="3" max=9>Age</input>',
    "<label>Scan <input type=file></label>": "<input file>Scan</input>",
    "<label><input type=checkbox checked> News</label>": "<input checkbox checked>News</input>",
    "<label><input type=radio> Red</label>": "<input radio>Red</input>",
    "<select title=City><option>Rom<option selected>Ulm</select>": '<select options="Rom|*Ulm">City</select>',
    "<button disabled>Send</button>": "<button disabled>Send</button>",
    "<button aria-expanded=false>More</button>": "<button expanded=false>More</button>",
    "<details><summary>Why</summary>Because</details>": "<summary expanded=false>Why</summary>",
    "<input type=submit value=Go>": "<input submit>Go</input>",
    "<button><img src=/x.png alt=Print width=16 height=16></button>": "<button>Print</button>",
    "<button><svg width=16 height=16><title>Close</title></svg></button>": "<button>Close</button>",
    "<button><i class='icon-trash' style='padding:8px'></i></button>": "<button>(icon-trash)</button>",
    "<button title=Bold style='width:20px'></button>": "<button>Bold</button>",
    "<button aria-label=Shut>x</button>": "<button>Shut</button>",
    "<b id=l>Pay</b> <button aria-labelledby=l>x</button>": "<button>Pay</button>",
    "<div contenteditable aria-label=Text>Hello</div>": '<textbox value="Hello">Text</textbox>',
    "<div role=combobox aria-expanded=true>Fruit</div>": "<combobox expanded=true>Fruit</combobox>",
    "<div role=slider tabindex=0 aria-label=Loud aria-valuenow=7>o</div>": '<slider value="7">Loud</slider>',
    "<div role=switch aria-checked=true>Dark</div>": "<switch checked>Dark</switch>",
    "<li role=option aria-selected=true>Plum</li>": "<option selected>Plum</option>",
    "<div onclick=go()>Open</div>": "<div>Open</div>",
    "<span style=cursor:pointer>Open</span>": "<span>Open</span>",
    "<canvas width=200 height=100 aria-label=Chart></canvas>": "<canvas size=200x100>Chart</canvas>",
    "<svg><circle onclick=go() cx=50 cy=50 r=5 fill=red /></svg>": "<circle color=#ff0000 size=10x10",
}


@pytest.mark.parametrize("html", KINDS)
async def test_a_control_is_reported_with_what_a_person_sees_of_it(site: Site, html: str) -> None:
    look = await site.show(html)
    (element,) = look.elements
    assert f"[{element.index}]{KINDS[html]}" in look.text


@pytest.mark.parametrize(
    "script",
    [
        "x.addEventListener('click', () => 1)",
        "x.addEventListener('pointerdown', () => 1)",
        "x.onclick = () => 1",
        "x.__reactProps$a1 = { onClick() {} }",
        "x.$$click = () => 1",
    ],
)
async def test_what_only_listens_is_a_control_too(site: Site, script: str) -> None:
    look = await site.show(f"<p>Words</p><div id=x>Open</div><script>{script}</script>")
    assert shown(look) == ["div: Open"]


async def test_the_root_that_a_framework_listens_on_is_no_control(site: Site) -> None:
    types = "Array.from({length: 30}, (_, at) => 'kind' + at).concat('click')"
    script = f"for (const type of {types}) x.addEventListener(type, () => 1)"
    look = await site.show(f"<div id=x><p>Words</p></div><script>{script}</script>")
    assert look.elements == ()


@pytest.mark.parametrize(
    "html",
    [
        "<button hidden>No</button>",
        "<button style=visibility:hidden>No</button>",
        "<button style=opacity:0>No</button>",
        "<button style='position:absolute;width:1px;padding:0;border:0;overflow:hidden'>No</button>",
        "<div inert><button>No</button></div>",
        "<input type=hidden>",
        "<div style='height:0;overflow:hidden'><button>No</button></div>",
        "<button style='position:absolute;left:-9999px'>No</button>",
        "<button>No</button><div style='position:fixed;inset:0;background:#fff'></div>",
        "<template><button>No</button></template>",
    ],
)
async def test_what_a_person_could_not_click_is_not_offered(site: Site, html: str) -> None:
    assert (await site.show(html)).elements == ()


async def test_a_choice_that_is_drawn_by_its_label_is_clicked_there(site: Site) -> None:
    look = await site.show("<input id=a type=checkbox style=opacity:0><label for=a>Dark</label>")
    assert "<input checkbox>Dark</input>" in look.text
    await (await site.find("Dark")).click()
    assert "<input checkbox checked>Dark</input>" in (await site.look()).text


async def test_a_hidden_file_field_is_found_itself(site: Site) -> None:
    await site.show("<label>Photo<input type=file hidden></label>")
    assert await (await site.find("Photo")).evaluate("element => element.type") == "file"


async def test_a_row_that_reacts_is_named_by_its_own_words_and_its_buttons_apart(site: Site) -> None:
    row = "<div onclick=go()><b>Ada</b> <i>Hello you</i> <button>Delete</button></div>"
    look = await site.show(row)
    assert shown(look) == ["div: Ada Hello you", "button: Delete"]
    assert look.text.count("Ada") == 1


async def test_text_and_controls_are_in_reading_order(site: Site) -> None:
    table = "<table><tr><th>Who<th>Age<tr><td>Ada<td>36<td><button>Edit</button></table>"
    look = await site.show(f"<h1>Staff</h1><p>All <a href=/x>people</a> here.</p>{table}<p>End")
    assert look.text.splitlines() == [
        "Staff",
        f"All [{named(look, 'people').index}]<link>people</link> here.",
        "Who | Age",
        f"Ada | 36 | [{named(look, 'Edit').index}]<button>Edit</button>",
        "End",
    ]


async def test_right_to_left_and_chinese_words_are_retained(site: Site) -> None:
    look = await site.show("<div dir=rtl><button>شراء</button></div><p>价格<button>购买</button>")
    assert shown(look) == ["button: شراء", "button: 购买"]


async def test_what_scrolls_inside_the_page_is_offered_and_what_is_cut_off_is_not(site: Site) -> None:
    items = "".join(f"<p><button>Item {at}</button></p>" for at in range(8))
    style = "height:60px;width:200px;overflow:"
    look = await site.show(f"<div style='{style}auto'>{items}</div>")
    assert len(look.elements) == 8
    look = await site.show(f"<div style='{style}hidden'>{items}</div>")
    assert 1 <= len(look.elements) < 8

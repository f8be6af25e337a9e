"""A page that changes between look and act: what is clicked is what was shown, or nothing."""

import random

import pytest

from maniple.browser.drivers.observation import PageObservation, find_element
from maniple.errors import BrowserError
from tests.browser.looking.site import Site, named
from tests.sizes import rest_is_slow

pytestmark = pytest.mark.anyio

NAMES = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal"]
ROW = "<li><b>{0}</b> <button>Delete</button> <a href='#{0}'>Open {0}</a></li>"
PAGE = f"""
    <ul id=list>{"".join(map(ROW.format, NAMES))}</ul><ul id=other><li><b>Zoe</b></li></ul>
    <script>
        const rows = () => [...list.querySelectorAll('li')];
        const words = (at) => rows()[at].querySelector('b');
        const button = (at) => rows()[at].querySelector('button');
        const link = (at) => rows()[at].querySelector('a');
        window.clicked = [];
        addEventListener('click', (event) => {{
            event.preventDefault();
            const target = event.target;
            const row = target.closest('li').querySelector('b').innerText;
            clicked.push(target.hash ? target.innerText + target.hash : row + ' ' + target.innerText);
        }}, true);
    </script>
"""
# What happens to the page, `a` and `b` being two rows; each of them to be survived without a wrong click.
CHANGES = [
    "1",
    "rows()[a].remove()",
    "rows()[b].before(rows()[a])",
    "button(a).replaceWith(button(a).cloneNode(true))",
    "button(a).remove()",
    "list.innerHTML = list.innerHTML",
    "[words(a).innerText, words(b).innerText] = [words(b).innerText, words(a).innerText]",
    "rows().map((_, at) => words(at).innerText).reverse().forEach((name, at) => words(at).innerText = name)",
    "rows()[b].append(button(a)), rows()[a].append(button(b))",
    "button(a).innerText = 'Keep'",
    "[link(a).innerText, link(b).innerText] = [link(b).innerText, link(a).innerText]",
    "[link(a).href, link(b).href] = [link(b).href, link(a).href]",
    "other.append(...rows())",
    "list.prepend(rows()[a].cloneNode(true))",
    "rows()[a].replaceWith(rows()[b].cloneNode(true))",
    "[...document.querySelectorAll('b')].forEach((b) => b.innerText = 'Mallory')",
    "button(a).setAttribute('role', 'link')",
    "button(a).outerHTML = '<input type=button value=Delete>'",
    "document.body.innerHTML = document.body.innerHTML",
    "words(a).prepend('Not ')",
]


@pytest.mark.parametrize("seed", rest_is_slow(range(5 * len(CHANGES)), len(CHANGES)))
async def test_what_has_changed_since_it_was_shown_is_never_clicked_for_something_else(
    site: Site, seed: int
) -> None:
    dice = random.Random(seed)
    look = await site.show(PAGE)
    targets = _targets(look)
    a, b = dice.sample(range(len(NAMES)), 2)
    await site.tab.evaluate(f"(([a, b]) => {{ {CHANGES[seed % len(CHANGES)]} }})([{a}, {b}])")
    for at in dice.sample([2 * a, 2 * a + 1, 2 * b, 2 * b + 1], 4):
        index, expected = targets[at]
        clicked = await _clicked(site, look, index)
        assert clicked in ([], [expected])


async def test_an_unchanged_element_is_clicked_despite_other_changes(site: Site) -> None:
    look = await site.show(PAGE)
    await site.tab.evaluate("rows()[0].remove(), list.append(rows()[3]), button(2).innerText = 'Keep'")
    targets = dict(_targets(look)[2 * at] for at in (1, 5, 6))
    for index, expected in targets.items():
        assert await _clicked(site, look, index) == [expected]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("x.remove()", "removed from the page"),
        ("x.outerHTML = x.outerHTML", "or replaced"),
        ("x.innerText = 'Other'", "become something else"),
        ("document.body.prepend(x)", "moved to another place"),
    ],
)
async def test_the_reason_names_the_remedy(site: Site, script: str, reason: str) -> None:
    look = await site.show("<p><button id=x>Pay</button></p>")
    await site.tab.evaluate(script)
    with pytest.raises(BrowserError, match=f"index 0 not found: .*{reason}.*current state"):
        await find_element(look, 0)


async def test_an_index_of_a_page_that_was_left_is_refused(site: Site) -> None:
    look = await site.show("<button>Pay</button>")
    await site.tab.reload()
    with pytest.raises(BrowserError, match=r"index 0 not found: .*reloaded or left"):
        await find_element(look, 0)


async def test_an_index_of_an_earlier_look_is_refused_in_a_later_one(site: Site) -> None:
    await site.show("<button id=x>Pay</button>")
    await site.tab.evaluate("x.outerHTML = '<a href=#>Back</a>'")
    look = await site.look()
    with pytest.raises(BrowserError, match=r"index 0 not found: .*an earlier look"):
        await find_element(look, 0)
    with pytest.raises(BrowserError, match="index 7 not found: no such index"):
        await find_element(look, 7)


async def test_what_a_state_changes_is_still_the_same_element(site: Site) -> None:
    look = await site.show("<input id=t aria-label=Town><label><input id=c type=checkbox> News</label>")
    await site.tab.evaluate("t.value = 'Oslo', t.setAttribute('value', 'Oslo'), c.checked = true")
    assert await find_element(look, named(look, "Town").index)
    assert await find_element(look, named(look, "News").index)


def _targets(look: PageObservation) -> list[tuple[int, str]]:
    """Each control's index and what a click on it meant when it was shown: "Ada Delete", "Open Ada#Ada"."""
    meant = [words for name in NAMES for words in (f"{name} Delete", f"Open {name}#{name}")]
    return [(element.index, words) for element, words in zip(look.elements, meant, strict=True)]


async def _clicked(site: Site, look: PageObservation, index: int) -> list[str]:
    """What a click on `index` hit, as the page says at that moment."""
    await site.tab.evaluate("window.clicked = []")
    try:
        await (await find_element(look, index)).click()
    except BrowserError as error:
        assert str(error).startswith(f"Element with index {index} not found")
    return await site.tab.evaluate("clicked")

import pytest

from tests.browser.looking.site import Site, named

pytestmark = pytest.mark.anyio


async def test_what_appeared_since_the_last_look_is_marked(site: Site) -> None:
    look = await site.show("<div id=d><button>Old</button></div>")
    assert "*[" not in look.text
    await site.tab.evaluate("d.insertAdjacentHTML('beforeend', '<button>Young</button>')")
    look = await site.look()
    assert f"*[{named(look, 'Young').index}]<button>Young</button>" in look.text
    assert look.text.count("*[") == 1
    assert "*[" not in (await site.look()).text


async def test_a_second_of_the_same_name_is_new(site: Site) -> None:
    await site.show("<div id=d><button>Delete</button></div>")
    await site.tab.evaluate("d.insertAdjacentHTML('beforeend', '<button>Delete</button>')")
    look = await site.look()
    assert [element.is_new for element in look.elements] == [False, True]


async def test_a_redrawn_element_is_not_new(site: Site) -> None:
    await site.show("<div id=d><button>Delete</button></div>")
    await site.tab.evaluate("d.innerHTML = d.innerHTML")
    assert "*[" not in (await site.look()).text


async def test_on_another_page_nothing_is_marked(site: Site) -> None:
    await site.show("<button>One</button>")
    site.pages["site"] = "<button>Two</button>"
    await site.tab.reload()
    assert "*[" not in (await site.look()).text


async def test_an_element_keeps_its_index_and_no_index_is_given_twice(site: Site) -> None:
    look = await site.show("<div id=d><button>A</button><button>B</button></div>")
    before = named(look, "B").index
    await site.tab.evaluate("d.firstChild.remove(); d.insertAdjacentHTML('afterbegin', '<button>C</button>')")
    look = await site.look()
    assert named(look, "B").index == before
    assert named(look, "C").index == 2
    await site.tab.reload()
    assert min(element.index for element in (await site.look()).elements) == 3

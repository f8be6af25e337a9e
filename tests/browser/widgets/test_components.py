"""Web components of three libraries: their words stand in slots, their controls in shadow roots."""

import re

import pytest

from tests.browser.driving import Driver
from tests.browser.widgets.bundles import PACKAGES, widget_pages
from tests.crawler.web import Site

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"]),
    pytest.mark.skipif(not PACKAGES.is_dir(), reason="the packages are not here: bash setup.sh dev"),
]

_MD, _SL, _SP = "@material/web", "@shoelace-style/shoelace/dist/components", "@spectrum-web-components"
_MATERIAL = ("button/filled-button", "checkbox/checkbox", "textfield/outlined-text-field", "tabs/tabs")
_MATERIAL_MORE = ("tabs/primary-tab", "select/outlined-select", "select/select-option", "list/list-item")
_SHOELACE = ("button", "checkbox", "input", "textarea", "select", "option", "tab-group", "tab", "tab-panel")
_SHOELACE_MORE = ("dropdown", "menu", "menu-item", "details", "radio-group", "radio")

LIBRARIES = {
    "material": (
        [f"{_MD}/{name}.js" for name in (*_MATERIAL, *_MATERIAL_MORE)],
        """<md-filled-button onclick="out.value += 'saved '">Save all</md-filled-button>
        <md-checkbox aria-label="Terms"></md-checkbox>
        <md-outlined-text-field label="First name"></md-outlined-text-field>
        <md-list-item type="button" onclick="out.value += 'cucumber '">Cucumber
        <div slot="supporting-text">a green thing</div></md-list-item>
        <md-tabs onchange="out.value += 'tab ' + event.target.activeTabIndex + ' '">
        <md-primary-tab>Mail</md-primary-tab><md-primary-tab>Photos</md-primary-tab></md-tabs>
        <md-outlined-select label="Fruit" onchange="out.value += this.value + ' '">
        <md-select-option value="a"><div slot="headline">Apple</div></md-select-option>
        <md-select-option value="b"><div slot="headline">Banana</div></md-select-option>
        </md-outlined-select>""",
    ),
    "shoelace": (
        [f"{_SL}/{name}/{name}.js" for name in (*_SHOELACE, *_SHOELACE_MORE)],
        """<style>:root { --sl-z-index-dropdown: 900 }</style>
        <sl-button onclick="out.value += 'saved '">Save all</sl-button><sl-button href="/x">Go on</sl-button>
        <sl-checkbox>I agree</sl-checkbox><sl-input label="First name"></sl-input>
        <sl-textarea label="Story"></sl-textarea>
        <sl-select label="Fruit"><sl-option value="a">Apple</sl-option><sl-option value="b">Banana</sl-option>
        </sl-select>
        <sl-radio-group label="Size"><sl-radio value="s">Small one</sl-radio></sl-radio-group>
        <sl-tab-group><sl-tab slot="nav" panel="g">General</sl-tab>
        <sl-tab slot="nav" panel="c">Custom</sl-tab>
        <sl-tab-panel name="g">General words.</sl-tab-panel>
        <sl-tab-panel name="c">Custom words.</sl-tab-panel></sl-tab-group>
        <sl-details summary="More of it">Folded words.</sl-details>
        <sl-dropdown><sl-button slot="trigger" caret>Actions</sl-button><sl-menu>
        <sl-menu-item onclick="out.value += 'renamed '">Rename it</sl-menu-item></sl-menu></sl-dropdown>""",
    ),
    "spectrum": (
        [f"{_SP}/button/sp-button.js"],
        "<sp-button onclick=\"out.value += 'saved '\">Save all</sp-button>",
    ),
}
NAMES = {
    "material": """button>Save all|input checkbox>Terms|input>First name|>Cucumber a green thing|>Mail|>Photos
        |combobox popup expanded=false>Fruit""",
    "shoelace": """button>Save all|link>Go on|input checkbox>I agree|input>First name|textarea>Story
        |combobox readonly popup expanded=false>Fruit|radio>Small one|tab selected>General|tab>Custom
        |button expanded=false>More of it|>Actions""",
    "spectrum": "button>Save all",
}


async def _open(library: str, driver: Driver, site: Site) -> str:
    modules, html = LIBRARIES[library]
    script = "\n".join(f"import '{module}';" for module in modules)
    site.pages.update(await widget_pages(script, f"{html}<output id=out></output>"))
    await driver.act("go_to_url", url=site.url)
    await driver.act("wait", seconds=0.3)
    return await driver.look()


@pytest.mark.parametrize("library", LIBRARIES)
async def test_each_control_of_a_library_is_listed_once_with_its_name(
    library: str, driver: Driver, site: Site
) -> None:
    listed = await _open(library, driver, site)
    for name in re.split(r"\s*\|", NAMES[library]):
        assert listed.count(f"{name}</") == 1, (name, listed)
    assert not re.search(r"\]<[^>]*></|>\(", listed), listed


STEPS = {
    "material": [
        ("click_element", "Save all", ""),
        ("click_element", "Terms", ""),
        ("input_text", "input>First name", "Ada"),
        ("click_element", "Cucumber", ""),
        ("click_element", "Photos", ""),
        ("select_dropdown_option", ">Fruit", "Banana"),
    ],
    "shoelace": [
        ("click_element", "Save all", ""),
        ("click_element", "I agree", ""),
        ("input_text", "input>First name", "Ada"),
        ("input_text", "textarea>Story", "one\ntwo"),
        ("select_dropdown_option", "expanded=false>Fruit", "Banana"),
        ("click_element", ">Custom", ""),
        ("click_element", "Actions", ""),
        ("wait", "Actions", ""),
        ("click_element", "Rename it", ""),
    ],
    "spectrum": [("click_element", "Save all", "")],
}
HELD = {
    "material": ["saved cucumber tab 1 b", "checkbox checked>Terms", 'value="Ada">First name', "Banana"],
    "shoelace": [
        "saved renamed",
        "checkbox checked>I agree",
        'value="Ada">First name',
        'value="one two">Story',
        'value="Banana"',
        "Custom words.",
    ],
    "spectrum": ["saved"],
}


@pytest.mark.parametrize("library", LIBRARIES)
async def test_the_controls_of_a_library_take_clicks_texts_and_choices(
    library: str, driver: Driver, site: Site
) -> None:
    await _open(library, driver, site)
    for action, name, text in STEPS[library]:
        parameters = {"text": text} if text else {"seconds": 0.5} if action == "wait" else {}
        if action == "wait":
            await driver.act(action, **parameters)
        else:
            await driver.on(action, name, **parameters)
    listed = await driver.look()
    for _ in range(20):  # menus are closed by animations
        if all(held in listed for held in HELD[library]):
            break
        await driver.act("wait", seconds=0.2)
        listed = await driver.look()
    for held in HELD[library]:
        assert held in listed, (held, listed)

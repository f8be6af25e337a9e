"""The actions by name."""

from collections.abc import Mapping

from maniple.browser.actions import ActionName
from maniple.browser.drivers.dropdowns import get_dropdown_options, select_dropdown_option
from maniple.browser.drivers.extraction import extract_content
from maniple.browser.drivers.inputs import input_text
from maniple.browser.drivers.keys import send_keys
from maniple.browser.drivers.navigation import go_back, go_to_url, open_tab, refresh, web_search
from maniple.browser.drivers.pointing import click_element
from maniple.browser.drivers.scrolling import scroll_down, scroll_to_text, scroll_up
from maniple.browser.drivers.tabbing import close_tab, switch_tab, wait
from maniple.browser.drivers.window import Act

ACTS: Mapping[ActionName, Act] = {
    "go_to_url": go_to_url,
    "open_tab": open_tab,
    "go_back": go_back,
    "refresh": refresh,
    "web_search": web_search,
    "click_element": click_element,
    "input_text": input_text,
    "scroll_down": scroll_down,
    "scroll_up": scroll_up,
    "scroll_to_text": scroll_to_text,
    "send_keys": send_keys,
    "get_dropdown_options": get_dropdown_options,
    "select_dropdown_option": select_dropdown_option,
    "extract_content": extract_content,
    "switch_tab": switch_tab,
    "close_tab": close_tab,
    "wait": wait,
}

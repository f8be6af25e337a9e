"""A new browser action is one module: validated, described to models, offered by the modes of its kind."""

import sys

import pytest

from maniple.agents.browsing.view import POLICIES
from maniple.browser import ACTIONS
from maniple.browser.actions import success_text
from maniple.browser.drivers import actions
from maniple.errors import BrowserError
from maniple.tools.browser import browser_use_tool

MODULE = '''
from maniple.browser.actions import Action, ElementIndex, action

class HoverAction(Action):
    index: ElementIndex

@action("hover", HoverAction, kind="move", line="element", prompt="hover (index)", done="Hovered {index}")
async def hover(window, action, services):
    """Move the pointer over an element."""
'''


@pytest.fixture
def hover(tmp_path, monkeypatch):
    """Add a module with the action `hover` to the package of actions."""
    (tmp_path / "hovering.py").write_text(MODULE)
    monkeypatch.setattr(actions, "__path__", [*actions.__path__, str(tmp_path)])
    actions.import_actions([str(tmp_path)])
    yield
    ACTIONS.remove("hover")
    del sys.modules[f"{actions.__name__}.hovering"], actions.hovering


def test_an_action_of_a_new_module_needs_no_other_file(hover):
    assert success_text(ACTIONS.parse({"action": "hover", "index": "[3]"})) == "Hovered 3"
    with pytest.raises(BrowserError, match="Index is required"):
        ACTIONS.parse({"action": "hover"})
    tool = browser_use_tool(None)
    assert "hover (index)" in tool.description
    assert "hover" in tool.args["action"]["enum"]
    offering = {mode for mode, policy in POLICIES.items() if "hover" in policy.actions}
    assert offering == set(POLICIES)


def test_a_name_and_a_parameter_type_belong_to_one_meaning(hover):
    with pytest.raises(ValueError, match="hover"):
        ACTIONS.add(ACTIONS["hover"])

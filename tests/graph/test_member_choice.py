"""The member for a whole request, chosen without a model."""

import pytest

from maniple.agents import ROLES
from maniple.graph.member_choice import choose_member

BRIEFS = {name: f"{role.brief} {role.description}" for name, role in ROLES.items() if name != "reporter"}
OWN = {**BRIEFS, "translator": "translates texts into other languages."}


@pytest.mark.parametrize(
    ("request_", "member"),
    [
        ("Who wrote Faust?", "researcher"),
        ("Use the browser to see what it costs.", "browser"),
        ("Open the form, fill it in and click on send.", "browser"),
        ("Delete the old folders.", "file_manager"),
        ("Translate this poem into French.", "translator"),
        ("Plot a histogram of these values: 3, 4, 4.", "coder"),
        ("Run the tests of the script.", "coder"),
        ("12 * 12 = ?", "coder"),
        ("Fasse https://a.test/x zusammen.", "researcher"),
    ],
)
def test_the_member_fits_the_request(request_, member):
    assert choose_member(request_, list(OWN), OWN) == member


def test_what_the_planner_wrote_counts_before_the_request():
    one, two = "The browser does it.", "The browser or the researcher."
    assert choose_member("12 * 12 = ?", list(OWN), OWN, one) == "browser"
    assert choose_member("12 * 12 = ?", list(OWN), OWN, two) == "coder"


def test_only_members_of_the_team_are_chosen():
    assert choose_member("12 * 12 = ?", ["browser", "researcher"], BRIEFS) == "browser"
    assert choose_member("12 * 12 = ?", [], BRIEFS) is None

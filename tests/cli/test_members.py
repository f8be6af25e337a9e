import pytest

from maniple.cli.options import UnknownMember, parse_members
from maniple.types import WORKERS


@pytest.mark.parametrize(
    ("names", "members"),
    [
        ([""], ()),
        (["reporter,coder"], ("coder", "reporter")),
        (["Coder", "file-manager"], ("coder", "file_manager")),
        ([" coder , ,browser"], ("coder", "browser")),
    ],
)
def test_members_are_read_as_people_write_them(names: list[str], members: tuple[str, ...]) -> None:
    assert parse_members(names, WORKERS) == members


def test_an_unknown_member_is_reported_with_the_nearest_one() -> None:
    with pytest.raises(UnknownMember, match=r"'codr'.* mean coder\? .*: researcher,"):
        parse_members(["codr"], WORKERS)


def test_a_member_that_is_not_on_this_team_is_unknown() -> None:
    with pytest.raises(UnknownMember, match=r"Available: coder, reporter\."):
        parse_members(["browser"], ("coder", "reporter"))

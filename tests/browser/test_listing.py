from hypothesis import given
from hypothesis import strategies as st

from maniple.browser.listing import ListingRow, estimate_tokens, render_row, render_rows, select_rows

ROWS = st.lists(
    st.builds(
        ListingRow,
        line=st.integers(1, 20),
        text=st.text(max_size=40),
        seen=st.booleans(),
        group=st.integers(0, 2),
        item=st.integers(0, 50),
        role=st.sampled_from(["", "button", "input email"]),
        left_out=st.sampled_from([0, 0, 0, 7]),
    ),
    max_size=80,
)


@given(ROWS, st.integers(100, 1_000))
def test_what_is_listed_stays_within_its_tokens(rows: list[ListingRow], tokens: int) -> None:
    shown = select_rows(rows, tokens)
    kept = [row for row in shown if not row.left_out]
    assert estimate_tokens(render_rows(kept)) <= tokens
    # No two marks beside each other.
    assert len(shown) <= 2 * len(kept) + 1


@given(ROWS)
def test_listed_items_keep_their_order_and_omitted_ones_are_counted(rows: list[ListingRow]) -> None:
    shown = select_rows(rows, 300)
    kept = [row for row in shown if not row.left_out]
    assert kept == [row for row in rows if any(row is other for other in kept)]
    if len(kept) < len([row for row in rows if not row.left_out]):
        assert sum(row.left_out for row in shown) > 0


@given(ROWS)
def test_a_notice_stays_whatever_is_left_out(rows: list[ListingRow]) -> None:
    notice = ListingRow(len(rows), "(in part)", is_notice=True)
    shown = select_rows([*rows, notice], 200)
    assert shown[-1] is notice
    assert estimate_tokens(render_rows(row for row in shown if not row.left_out)) <= 200


def test_a_control_is_written_as_in_the_contract() -> None:
    row = ListingRow(1, "Send", role="button", index=33)
    assert render_row(row) == "[33]<button>Send</button>"
    assert render_row(
        ListingRow(1, "Mail", role="input email", details=("required",), index=4, is_new=True)
    ) == ("*[4]<input email required>Mail</input>")


def test_chinese_takes_a_token_a_character() -> None:
    assert estimate_tokens("购买") == 2

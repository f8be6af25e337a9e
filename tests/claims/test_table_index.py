"""The heads of a table's rows and columns."""

from maniple.claims.table_index import LabelIndex, find_label_terms


def test_a_head_is_named_by_the_words_that_only_it_has():
    heads = LabelIndex(["Waterworks North", "Waterworks South"])
    assert heads.find_named(find_label_terms("In the south")) == {"Waterworks South"}
    assert heads.find_named(find_label_terms("The waterworks")) == set()


def test_years_tell_columns_apart():
    heads = LabelIndex(["2024 (GWh)", "2025 (GWh)"])
    assert heads.find_named(find_label_terms("In 2025 it made 5 GWh")) == {"2025 (GWh)"}


def test_a_head_of_several_words_is_named_by_all_of_them():
    heads = LabelIndex(["Arvika Bay", "Dunleith"])
    assert heads.find_named(find_label_terms("In the bay")) == set()

"""The passage that a search shows."""

from maniple.service.search import find_passage


def marked(text, *terms):
    passage, marks = find_passage(text, terms)
    return passage, [passage[start:end] for start, end in marks]


def test_the_passage_is_around_the_first_word_and_all_words_in_it_are_marked():
    text = "Nothing here. " * 50 + "Solar power grew, and Müller counts solar cells. " + "The end. " * 50
    passage, words = marked(text, "solar", "muller")
    assert words == ["Solar", "Müller", "solar"]
    assert len(passage) <= 240 and not passage.startswith("othing")


def test_a_whole_word_is_preferred_to_a_part_of_one():
    passage, _ = marked("a cart " * 100 + "This is art.", "art")
    assert "This is art." in passage


def test_a_text_without_the_words_shows_its_beginning():
    assert marked("The beginning.", "missing") == ("The beginning.", [])
    assert marked("", "missing") == ("", [])


def test_words_that_touch_are_one_mark():
    assert marked("光伏发电", "光伏", "伏发") == ("光伏发电", ["光伏发"])

"""The recorded run that the start page offers."""

from playwright.sync_api import Page, expect

from maniple.replay.sample import SAMPLE, SampleRun, load_sample
from tests.page import sample


def test_the_recording_is_that_of_its_script_and_small():
    recorded = load_sample()
    assert recorded.question == sample.QUESTION
    assert len(SAMPLE.read_bytes()) <= sample.MAX_BYTES
    assert SampleRun.unpack(recorded.pack()) == recorded


def test_a_new_person_watches_a_finished_run_from_its_question_to_its_report(page: Page):
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Watch a finished run").click()
    watched = opened.value
    wrong: list[str] = []
    watched.on("pageerror", lambda error: wrong.append(str(error)))
    watched.on("console", lambda said: wrong.append(said.text))
    expect(watched.locator(".question")).to_have_text(sample.QUESTION)
    expect(watched.locator(".answer")).to_have_count(0)
    watched.get_by_role("slider", name="Position").press("End")
    expect(watched.locator(".standing.completed")).to_be_visible()
    for title in ("Read about the planets", "Read about the moons", "Fit and draw"):
        expect(watched.get_by_text(title, exact=True).first).to_be_visible()
    expect(watched.get_by_role("heading", name="One law for planets and moons", exact=True)).to_be_visible()
    figure = watched.locator(".answer img")
    expect(figure).to_be_visible()
    assert figure.evaluate("img => img.complete && img.naturalWidth > 0")
    expect(watched.locator(".answer math").first).to_be_visible()
    assert watched.evaluate("performance.getEntriesByType('resource').map(one => one.name)") == []
    assert wrong == []


def test_the_start_page_does_not_load_the_recording(page: Page):
    expect(page.get_by_role("link", name="Watch a finished run")).to_be_visible()
    loaded = page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    assert not [one for one in loaded if "sample" in one]

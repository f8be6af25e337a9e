import io

from rich.console import Console

from maniple.cli.render.startup import StartupBar, StartupLines


def test_work_is_reported_in_lines_once_and_not_for_every_step() -> None:
    notes = io.StringIO()
    progress = StartupLines(notes)
    for part in range(1, 23):
        progress.step(f"fetching part {part} of 22", part * 50_000_000, 1_117_320_768)
    progress.step("loading the local model")
    progress.close()

    assert notes.getvalue().splitlines() == [
        "fetching part 1 of 22: 50 of 1,117 MB (4 %)",
        "loading the local model …",
    ]


def test_a_bar_shows_bytes_and_leaves_nothing_behind() -> None:
    file = io.StringIO()
    progress = StartupBar(Console(file=file, width=120, force_terminal=True, no_color=True))
    progress.step("starting the team")
    for done in range(0, 100_000_001, 20_000_000):
        progress.step("fetching \x1b[31m[bold]the model", done, 100_000_000)
    progress.step("loading")
    progress.close()
    shown = file.getvalue()

    assert "starting the team" in shown and "loading" in shown
    assert "fetching [bold]the model" in shown and "\x1b[31m" not in shown
    assert "100.0/100.0 MB" in shown
    assert shown.endswith("\x1b[2K")


def test_closing_a_bar_that_was_never_shown_prints_nothing() -> None:
    file = io.StringIO()
    StartupBar(Console(file=file, force_terminal=True)).close()
    assert file.getvalue() == ""

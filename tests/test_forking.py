import os
import subprocess
import sys
from pathlib import Path

from tests.environment import environment
from tests.forking import Forked
from tests.serving import ROOT


def test_a_forked_program_is_a_child_with_the_status_streams_and_settings_that_it_was_given(tmp_path):
    (tmp_path / "conf.yaml").write_text("no_such_section: {}\n", encoding="utf-8")
    command = [sys.executable, str(ROOT / "main.py"), "1+3=?"]
    env = environment("http://nobody.test", tmp_path)
    with Forked(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        stat = Path(f"/proc/{program.pid}/stat").read_text(encoding="utf-8")
        assert int(stat.rpartition(")")[2].split()[1]) == os.getpid()
        output, notes = program.communicate(timeout=60)
    assert (program.returncode, output) == (2, b"")
    assert b"no_such_section" in notes


def test_another_program_or_another_python_is_started_as_ever(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys; print('maniple' in sys.modules)", encoding="utf-8")
    with Forked([sys.executable, str(program)], stdout=subprocess.PIPE) as other:
        assert other.communicate(timeout=60) == (b"False\n", None)
    # What Python reads at its start is read.
    (tmp_path / "sitecustomize.py").write_text("open('started', 'w').close()", encoding="utf-8")
    env = {"LANG": "C.UTF-8", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(ROOT / "main.py"), "--help"]
    with Forked(command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL) as usual:
        assert usual.wait(60) == 0
    assert (tmp_path / "started").exists()

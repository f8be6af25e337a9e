"""The Python of a session: one namespace for all its calls.

Runs inside the sandbox, forked from `worker.py`, and must stand alone: the standard library, and nothing of
maniple.

    host: ID python LIMIT      {"id": ID, "exit_code": N, "value": TEXT, "images": [PATH, …]}
          CODE                 `value` has at most LIMIT characters
"""

# pathlib takes longer to import than all that is needed here.
# ruff: noqa: PTH103, PTH108, PTH109, PTH110, PTH118, PTH123

from __future__ import annotations

# The public modules over those with a line before their names import much that a first call would wait for.
import _ast
import _json
import _signal  # pyright: ignore[reportMissingImports]
import builtins
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec
    from traceback import TracebackException
    from types import CodeType, FrameType, ModuleType
    from typing import Any, NoReturn

_FIGURES = "figures"
_MAX_FIGURES = 10
_MAX_FIGURE_BYTES = 5_000_000
_MAX_WHY = 300
_MAX_PICTURE_SIDE = 2_000
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
_PNG = b"\x89PNG\r\n\x1a\n"
_RAISED, _INTERRUPTED = 1, 130
_ONLY_AST = 0x400
_TOP_LEVEL_AWAIT = 0x2000
"""`ast.PyCF_ALLOW_TOP_LEVEL_AWAIT`, as in notebooks."""
_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`: the code awaits something."""
_SIGINT = 2
_WEIGHTS = (400, 700)
_FALLBACK_FONTS = (
    *("WenQuanYi Zen Hei", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC"),
    *("WenQuanYi Micro Hei", "Droid Sans Fallback", "AR PL UMing CN", "IPAGothic", "Unifont"),
    *("Lohit Devanagari", "Noto Sans Devanagari", "Noto Emoji"),
)
"""Fonts for what matplotlib's own cannot draw; those that are installed are used in this order."""


_COMMAND, _SHELL = "Run shell commands with bash_tool: {line}", "Run shell commands with bash_tool."
_TIMES = "Leave it out, and take time.perf_counter() before and after."
_INSTEAD_OF_MAGIC = {
    **dict.fromkeys(("pip", "conda", "mamba", "uv", "ls", "cat", "mkdir", "cp", "mv", "rm"), _COMMAND),
    **dict.fromkeys(("bash", "sh", "script", "system", "sx"), _SHELL),
    **dict.fromkeys(("time", "timeit", "prun"), _TIMES),
    **dict.fromkeys(("writefile", "file"), "Write files with open(…, 'w')."),
    **dict.fromkeys(("env", "set_env"), "Use os.environ."),
    "cd": "Use os.chdir({rest!r}).",
    "run": "Use runpy.run_path({rest!r}).",
}
"""What to do instead of a notebook's magic commands; the others concern the notebook itself."""


def serve(read: Callable[[], bytes], write: Callable[[bytes], None]) -> None:
    """Run one call after the other until the host closes its end: `read` then gives nothing."""
    here = sys._getframe()
    interpreter = Interpreter({each.f_code.co_filename for each in (here, here.f_back) if each})
    while frame := read():
        call, _, rest = frame.split(b"\n", 2)
        limit, code = rest.split(b"\n", 1)
        exit_code, value, images = interpreter.run(code.decode(), int(limit))
        message = {"id": _text(call.decode()), "exit_code": str(exit_code), "value": _text(value)}
        message["images"] = f"[{', '.join(map(_text, images))}]"
        fields = (f"{_text(key)}: {field}" for key, field in message.items())
        write(f"{{{', '.join(fields)}}}".encode())


_text = _json.encode_basestring_ascii


class Interpreter:
    """Runs code in the module `__main__`."""

    def __init__(self, own_files: set[str]) -> None:
        """`own_files` are left out of tracebacks."""
        import site

        self._running = False
        _signal.signal(_SIGINT, self._interrupt)
        self._own_files = own_files
        self._sources: list[tuple[str, str]] = []
        self._process = os.getpid()
        self._outputs = [os.dup(1), os.dup(2)]
        self._streams = [_stream(1), _stream(2)]
        self._module = type(sys)("__main__")
        self._calls = 0
        self._loop: Any = None
        self._figures = Figures(os.getcwd())
        sys.modules["__main__"] = self._module
        sys.argv = [""]
        # Behind the standard library, so that no file of the code's takes the place of a module of ours.
        sys.path.append(os.getcwd())
        site.main()
        # Where pip puts what the code installs itself.
        sys.path += filter(None, [os.environ.get("PIP_TARGET")])  # noqa: TID251
        actions = {
            "matplotlib.figure": self._figures.watch,
            "matplotlib.pyplot": self._figures.adopt,
            "matplotlib.font_manager": add_fallback_fonts,
            "linecache": self._show_sources,
        }
        sys.meta_path.insert(0, AfterImport(actions))
        builtins.input = _no_input

    def run(self, code: str, limit: int) -> tuple[int, str, list[str]]:
        """Run the code as far as it goes: exit code, last value, figures. Nothing that it raises gets out."""
        self._prepare()
        value, exit_code = "", 0
        try:
            try:
                self._running = True
                try:
                    value = self._evaluate(code, limit)
                finally:
                    self._figures.save_open_figures()
            finally:
                self._running = False
        except SystemExit as end:
            exit_code = _exit_code(end)
        except KeyboardInterrupt as error:
            exit_code = _INTERRUPTED
            self._show(error)
        except BaseException as error:  # noqa: BLE001 - any exception of the code is its result
            exit_code = _RAISED
            self._show(error)
        return self._finish(value, exit_code)

    def _prepare(self) -> None:
        """Undo what an earlier call may have done to the ways in and out."""
        self._calls += 1
        for descriptor, saved in enumerate(self._outputs, 1):
            os.dup2(saved, descriptor)
        for number, stream in enumerate(self._streams):
            if stream.closed:
                self._streams[number] = _stream(number + 1)
        sys.stdout, sys.stderr = self._streams
        _signal.signal(_SIGINT, self._interrupt)
        self._figures.begin()

    def _finish(self, value: str, exit_code: int) -> tuple[int, str, list[str]]:
        if ctypes := sys.modules.get("ctypes"):
            ctypes.CDLL(None).fflush(None)  # what native code printed waits in the C library
        if os.getpid() != self._process:
            os._exit(exit_code)  # a child that the code forked and let run on
        return exit_code, value, self._figures.saved

    def _evaluate(self, code: str, limit: int) -> str:
        name = f"<call {self._calls}>"
        self._sources.append((name, code))
        if linecache := sys.modules.get("linecache"):
            self._show_sources(linecache)
        body, last = _split(code, name)
        names = self._module.__dict__
        self._execute(body)
        value = self._execute(last) if last else None
        if value is None:
            return ""
        names["_"] = value
        self._figures.show(value)
        return _cut(repr(value), limit)

    def _execute(self, code: CodeType) -> Any:
        """Run compiled code; what it awaits at top level runs in an event loop that stays between calls."""
        result = eval(code, self._module.__dict__)
        if not code.co_flags & _COROUTINE:
            return result
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        task = self._loop.create_task(result)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            if not task.done():  # interrupted: it must not go on in a later call
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task], timeout=1))
            raise

    def _show_sources(self, linecache: Any) -> None:
        """Register the source of a call, so that tracebacks and `inspect` find its lines."""
        for name, code in self._sources:
            lines = f"{code}\n".splitlines(keepends=True)
            linecache.cache[name] = (len(code), None, lines, name)
        self._sources.clear()

    def _show(self, error: BaseException) -> None:
        """Write the traceback without our own frames."""
        try:
            import traceback

            shown = traceback.TracebackException.from_exception(error)
            for each in _chain(shown):
                each.stack[:] = [frame for frame in each.stack if frame.filename not in self._own_files]
            print("".join(shown.format()), end="", file=sys.stderr)
            if isinstance(error, SyntaxError) and (advice := _advise_on_notebook_syntax(error)):
                print(advice, file=sys.stderr)
        except BaseException as another:  # noqa: BLE001 - an exception may fail to describe itself
            name, why = type(error).__name__, type(another).__name__
            os.write(2, f"{name} (it could not be shown: {why})\n".encode())

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            raise KeyboardInterrupt


def _split(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    """The statements, and the expression at their end whose value is shown; `;` after it hides it."""
    flags = _TOP_LEVEL_AWAIT
    tree: Any = compile(code, name, "exec", _ONLY_AST | flags, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    value = None
    if isinstance(last, _ast.Expr) and not code.rstrip().endswith(";"):
        del tree.body[-1]
        value = compile(_ast.Expression(last.value), name, "eval", flags, dont_inherit=True)
    return compile(tree, name, "exec", flags, dont_inherit=True), value


def _advise_on_notebook_syntax(error: SyntaxError) -> str:
    """Return what to do instead of a line that only notebooks understand; "" for other mistakes."""
    line = (error.text or "").strip()
    said = f"`{line}` is a notebook's syntax."
    before, sign, command = line.partition("!")
    if sign and before.rstrip(" =").isidentifier() and before.count("=") == 1:  # files = !ls
        return f"{said} Negate with `not`; run a command with bash_tool, or with subprocess.run: {command}"
    if line.startswith("!"):
        return f"{said} Run shell commands with bash_tool: {command.strip()}"
    if line.startswith("%"):
        name, _, rest = line.lstrip("%").partition(" ")
        advice = _INSTEAD_OF_MAGIC.get(name, "Leave it out: figures are shown without it.")
        return f"{said} {advice.format(line=f'{name} {rest}'.strip(), rest=rest.strip())}"
    return ""


def add_fallback_fonts(font_manager: Any) -> None:
    """Let matplotlib draw with other installed fonts what the named ones cannot draw, such as Chinese labels.

    They follow every list of fonts, because programs and seaborn's themes set their own.
    """
    from dataclasses import replace

    fonts = font_manager.fontManager.ttflist
    installed = {font.name for font in fonts}
    found = [name for name in _FALLBACK_FONTS if name in installed]
    # Such fonts have one weight; matplotlib would complain of each label that it does not have another.
    known = [font for font in fonts if font.name in found]
    fonts += [replace(font, weight=weight) for font in known for weight in _WEIGHTS if font.weight != weight]
    named = font_manager.FontProperties.get_family

    def get_family(properties: Any) -> list[str]:
        families = list(named(properties))
        return [*families, *(name for name in found if name not in families)]

    font_manager.FontProperties.get_family = get_family


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 0xFF
    print(end.code, file=sys.stderr)
    return _RAISED


def _chain(shown: TracebackException | None) -> Iterator[TracebackException]:
    while shown:
        yield shown
        shown = shown.__cause__ or shown.__context__


def _stream(descriptor: int) -> io.TextIOWrapper:
    """Unbuffered, so that no printed text is lost when the process is killed."""
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[arg-type]


def _no_input(prompt: object = "", /) -> NoReturn:
    print(prompt, end="")
    raise EOFError("nobody can type here; write the value into the code")


class AfterImport:
    """An import hook that lets something happen to modules when they are imported."""

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self._actions = actions

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find the modules that something is to happen to as they are found anyway."""
        action = self._actions.get(name)
        if action is None:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def run(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = run
        return spec


class Figures:
    """Stores the figures of matplotlib as PNG files, except those that the code has stored itself."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._next = 1
        self.saved: list[str] = []
        self._drawn = 0
        self._last: Any = None
        self._writing = False
        self._shown_by: dict[str, int] = {}
        """The number of the save that wrote a file last."""
        self._saves = 0

    def begin(self) -> None:
        """Forget the figures of the call before."""
        self.saved = []
        self._drawn = 0

    def watch(self, module: Any) -> None:
        """Record which file each figure was last saved to by the code.

        A figure is the same until something is drawn on it, whatever the resolution of a file.
        """
        save = module.Figure.savefig

        def savefig(figure: Any, fname: Any, *args: Any, **options: Any) -> Any:
            own = "" if getattr(figure, "stale", True) else getattr(figure, "_maniple_own", "")
            result = save(figure, fname, *args, **options)
            if not self._writing and (name := self._picture_in_workspace(fname)):
                if own and own != name:
                    self._replace_own(own, name)
                self._saves += 1
                self._shown_by[name] = self._saves
                figure._maniple_file, figure._maniple_save = name, self._saves
                figure.stale = False  # what is drawn from now on sets it again
            return result

        module.Figure.savefig = savefig

    def _picture_in_workspace(self, target: Any) -> str:
        """Return the path of a picture below the workspace; "" for any other file."""
        try:
            name = os.path.relpath(os.path.realpath(os.fspath(target)), os.path.realpath(self._workspace))
        except (TypeError, ValueError):
            return ""
        is_shown = isinstance(name, str) and name.lower().endswith((".png", ".jpg", ".jpeg", ".webp"))
        return name if is_shown and not name.startswith("..") and os.path.exists(target) else ""

    def _replace_own(self, own: str, name: str) -> None:
        """Leave one picture of a figure that `show` has written and the code then saves.

        The result of an earlier call names the own file, so that stays, as a copy of the other.
        """
        place, other = (os.path.join(self._workspace, one) for one in (own, name))
        if own in self.saved:
            os.unlink(place)
            self.saved[self.saved.index(own)] = name
        elif name.lower().endswith(".png") and os.path.exists(place):
            with open(other, "rb") as source, open(place, "wb") as target:
                target.write(source.read())

    def adopt(self, pyplot: Any) -> None:
        """Make `show` store and close figures instead of warning.

        A later `savefig` writes the last closed one.
        """
        save_current = pyplot.savefig

        def savefig(*args: Any, **options: Any) -> Any:
            if self._last is None or pyplot.get_fignums():
                return save_current(*args, **options)
            return self._last.savefig(*args, **options)

        pyplot.savefig = savefig
        pyplot.show = lambda *args, **options: self.save_open_figures()

    def show(self, value: Any) -> None:
        """Write a picture or a figure that a call ends with; print why it could not be written."""
        try:
            figure = _figure_of(value)
            if figure is not None:
                self._show_figure(figure)
            elif content := _picture_of(value):
                self._drawn += 1
                if self._drawn <= _MAX_FIGURES:
                    self._store(content)
        except Exception as error:  # noqa: BLE001 - drawing is the code's own, and so is what it raises
            _explain_lost(error)

    def _show_figure(self, figure: Any) -> None:
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and pyplot.fignum_exists(getattr(figure, "number", None)):
            return  # it is written with the open ones
        own = "" if getattr(figure, "stale", True) else getattr(figure, "_maniple_own", "")
        if own and os.path.exists(os.path.join(self._workspace, own)):
            if own not in self.saved:
                self.saved.append(own)
            return
        self._drawn += 1
        if self._drawn <= _MAX_FIGURES:
            self._write(figure)

    def save_open_figures(self) -> None:
        """Write each open figure to the workspace and close it; print which could not be drawn or written."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        numbers = pyplot.get_fignums()
        self._last = pyplot.gcf() if numbers else self._last
        for number in numbers:
            self._drawn += 1
            try:
                if self._drawn <= _MAX_FIGURES:
                    self._write(pyplot.figure(number))
            except Exception as error:  # noqa: BLE001 - drawing is the code's own, and so is what it raises
                _explain_lost(error)
            finally:
                pyplot.close(number)
        if self._drawn > _MAX_FIGURES:
            print(f"[only the first {_MAX_FIGURES} figures were kept]", file=sys.stderr)

    def _write(self, figure: Any) -> None:
        known = getattr(figure, "_maniple_file", "")
        # Another figure may have been saved to the same file since.
        is_last = known and self._shown_by.get(known) == figure._maniple_save
        if (
            is_last
            and not getattr(figure, "stale", True)
            and os.path.exists(os.path.join(self._workspace, known))
        ):
            if known not in self.saved:
                self.saved.append(known)
            return
        content = io.BytesIO()
        self._writing = True
        try:
            figure.savefig(content, format="png")
        finally:
            self._writing = False
        if name := self._store(content.getvalue()):
            figure._maniple_own, figure._maniple_file = name, ""
            figure.stale = False

    def _store(self, content: bytes) -> str:
        """Write a PNG to the workspace and return its path; "" if it is too large, which is printed."""
        if len(content) > _MAX_FIGURE_BYTES:
            print(f"[a figure of {len(content)} bytes was not kept; draw it smaller]", file=sys.stderr)
            return ""
        os.makedirs(os.path.join(self._workspace, _FIGURES), exist_ok=True)
        while True:
            name = f"{_FIGURES}/figure-{self._next}.png"
            self._next += 1
            try:
                file = open(os.path.join(self._workspace, name), "xb")  # noqa: SIM115
            except FileExistsError:
                continue
            with file:
                file.write(content)
            self.saved.append(name)
            return name


def _explain_lost(error: Exception) -> None:
    why = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_WHY]
    print(f"[a figure was not kept: {why}]", file=sys.stderr)


def _figure_of(value: Any) -> Any:
    """Return the matplotlib figure that a value is or belongs to; None for any other value."""
    module = sys.modules.get("matplotlib.figure")
    if module is None:
        return None
    found = value if isinstance(value, module.Figure) else getattr(value, "figure", None)
    return found if isinstance(found, module.Figure) else None


def _picture_of(value: Any) -> bytes:
    """Return a picture of Pillow, or an object that shows itself in notebooks, as PNG; b"" for any other."""
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        # Not `thumbnail` of a copy: twice a large picture may be more memory than the session has.
        factor = min(1, _MAX_PICTURE_SIDE / max(*value.size, 1))
        size = tuple(max(1, round(side * factor)) for side in value.size)
        small = value.resize(size, reducing_gap=2.0) if factor < 1 else value
        content = io.BytesIO()
        (small if small.mode in _PNG_MODES else small.convert("RGB")).save(content, "PNG")
        return content.getvalue()
    drawn = getattr(type(value), "_repr_png_", None)
    shown = drawn(value) if callable(drawn) else None
    return shown if isinstance(shown, bytes) and shown.startswith(_PNG) else b""

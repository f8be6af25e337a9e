"""Where `maniple chat` logs: a person's terminal is left alone."""

import sys
from types import TracebackType

from maniple.config import Settings

LOG_FILE = "chat.log"


def configure_chat_log(settings: Settings) -> None:
    """Log to stderr, plainly, but to `chat.log` in the data directory when stderr is a terminal or closed.

    On stderr INFO would only repeat the progress, so that it begins with warnings there; DEBUG is all.
    """
    from maniple.config.secrets import redactor_of
    from maniple.telemetry.logs import configure_logs

    level, redactor = settings.logging.level, redactor_of(settings)
    format = "json" if settings.logging.format == "json" else "console"
    if sys.stderr is not None and not sys.stderr.isatty():
        configure_logs("WARNING" if level == "INFO" else level, format, redactor)
        return
    file = settings.data_dir / LOG_FILE
    configure_logs(level, format, redactor, stream=file)
    log_the_end = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        log_the_end(kind, error, traceback)
        if sys.stderr is not None and not issubclass(kind, KeyboardInterrupt):
            words = redactor.text(f"{kind.__name__}: {error}")
            print(f"The program ended unexpectedly. {words}\nMore is in {file}.", file=sys.stderr)

    sys.excepthook = tell

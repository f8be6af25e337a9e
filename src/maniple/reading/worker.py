"""The process that reads what it takes a large library to read.

`python -m maniple.reading.worker KIND URL <DOCUMENT` prints the reading as JSON, or `{"error": …}`.
"""

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict

from maniple.reading.docx import read_docx
from maniple.reading.feed import read_feed
from maniple.reading.pdf import read_pdf
from maniple.reading.result import Reading, Unreadable

READERS: dict[str, Callable[[bytes, str], Reading]] = {"pdf": read_pdf, "docx": read_docx, "feed": read_feed}
_MAX_MEMORY_BYTES = 1_000_000_000


def main() -> None:
    """Read what stands on standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    kind, url = sys.argv[1:]
    try:
        answer = asdict(READERS[kind](sys.stdin.buffer.read(), url))
    except Unreadable as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "takes too much memory to be read"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()

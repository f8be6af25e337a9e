"""The process that reads what is large, or takes a large library to read.

`python -m maniple.reading.worker KIND URL CHARSET <DOCUMENT` prints the reading as JSON, or `{"error": …}`.
"""

import json
import resource
import sys
from dataclasses import asdict

from maniple.reading.formats import read_as
from maniple.reading.result import Unreadable

_MAX_MEMORY_BYTES = 1_000_000_000


def main() -> None:
    """Read what stands on standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    kind, url, charset = sys.argv[1:]
    try:
        answer = asdict(read_as(kind, sys.stdin.buffer.read(), url, charset))
    except Unreadable as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "takes too much memory to be read"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()

"""Files that only their owner can read, and that are replaced as a whole."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_draft(target: Path) -> Iterator[Path]:
    """Yield a new file beside `target`, which takes its place afterwards; after an error it is removed.

    Nobody ever finds `target` half-written. Blocks on disk. Raises `OSError`.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)  # for its owner alone
    os.close(descriptor)
    draft = Path(name)
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)

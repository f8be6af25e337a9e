"""What to do when the embedded model cannot be had."""

from maniple.errors import EmbeddedModelError
from maniple.types import installing

INSTALL_ENGINE = installing("local")
REMEDY = (
    "You can use any OpenAI-compatible endpoint instead: set BASIC_API_KEY, BASIC_BASE_URL and BASIC_MODEL. "
    "Or name a GGUF file that you have in embedded.model_file; it needs the same engine, xllamacpp."
)


def embedded_error(problem: str) -> EmbeddedModelError:
    """The error that says `problem` (a sentence), and then the ways round it."""
    return EmbeddedModelError(f"{problem} {REMEDY}")

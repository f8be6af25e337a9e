"""What model servers really send, and what must come out of it.

Each row is what one server sends, after its documentation or public bug reports of its users.
"""

from tests.endpoints.raw_calls import CALLS_ROWS
from tests.endpoints.raw_frames import FRAMES, USAGE
from tests.endpoints.raw_plans import PLANS
from tests.endpoints.raw_refusals import REFUSALS
from tests.endpoints.raw_thoughts import THOUGHTS
from tests.endpoints.server_framing import RawOutput

ROWS: tuple[RawOutput, ...] = (*REFUSALS, *THOUGHTS, *CALLS_ROWS, *PLANS, *FRAMES, *USAGE)

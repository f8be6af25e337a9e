"""What a request that does not fit is answered."""

import json
import math
from typing import Any

from fastapi import Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from maniple.text import whole

SHOWN_CHARACTERS = 500


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a body that does not fit with 422 and where it does not.

    FastAPI's own answer repeats the input as it came, which may be no JSON (NaN, half a character) or the
    whole body: then it is left out.
    """
    if not isinstance(error, RequestValidationError):
        raise error
    details = [
        _presentable(detail) for detail in jsonable_encoder(error.errors(), custom_encoder={float: _number})
    ]
    return JSONResponse({"detail": details}, status_code=422)


def _presentable(detail: dict[str, Any]) -> dict[str, Any]:
    shown = whole({key: value for key, value in detail.items() if key != "ctx"})
    try:
        size = len(json.dumps(shown.get("input"), allow_nan=False))
    except ValueError:
        size = SHOWN_CHARACTERS + 1
    if size > SHOWN_CHARACTERS:
        shown.pop("input", None)
    return shown


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)

"""The model's own process: `python child.py MODEL --threads N --parallel N --context-tokens N --alias NAME`.

The first line of its input is the API key, which keeps out other users of this machine. When the model is
loaded, it prints one line of JSON, `{"address": "http://127.0.0.1:PORT"}`. It ends when its input ends or its
parent dies. It imports nothing of maniple, to save memory.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_CACHED_PROMPTS_MIB = 256
_ERRORS_ONLY = 1


def main() -> None:
    """Serve the model until the input ends."""
    options = _options()
    _die_with_parent()
    api_key = sys.stdin.readline().strip()
    if not api_key:
        sys.exit("the API key is missing on the standard input")
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engine's output must not mix with the answer, nor fill a pipe that is not read
    try:
        server = _serve(options, api_key)
    except RuntimeError as error:  # the engine has written the reason
        sys.exit(str(error))
    print(json.dumps({"address": server.listening_address}), file=answer, flush=True)
    while sys.stdin.readline():
        continue
    os._exit(0)  # skips the engine's own shutdown, which may wait for abandoned requests


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--context-tokens", type=int, required=True, help="the window of one request")
    parser.add_argument("--alias", required=True, help="the model's name in the API")
    return parser.parse_args()


def _die_with_parent() -> None:
    # The end of the input is not noticed while the engine loads, because it holds the interpreter.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(options: argparse.Namespace, api_key: str) -> Any:
    # Set before the import, which reads it. On a busy machine, OpenMP threads that spin would starve.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # noqa: TID251
    import xllamacpp as _engine

    engine: Any = _engine  # it has no type hints

    params = engine.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.n_ctx = options.context_tokens * options.parallel
    params.n_parallel = options.parallel
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = True
    # Repacking copies the weights (0.6 GB) for 10 % more speed; without it they are mapped from the file.
    params.no_extra_bufts = True
    # Both cost a second at each start: a test load to fit graphics memory, and a test token.
    params.fit_params = False
    params.warmup = False
    # The cache of prompts without a slot (28 KB a token); the engine's default is 8 GB.
    params.cache_ram_mib = _CACHED_PROMPTS_MIB
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [api_key]
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = _ERRORS_ONLY
    return engine.Server(params)


if __name__ == "__main__":
    main()

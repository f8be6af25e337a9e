"""The model's own process: `python child.py MODEL --threads N --parallel N --context-tokens N --alias NAME`.

Its first line of input is the API key, which keeps other users of this machine out. It prints one line of
JSON, `{"address": "http://127.0.0.1:PORT"}`, when the model is loaded, and ends when its input does or when
its parent dies. It imports nothing of maniple, so that it stays as small as the model.
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
    os.dup2(2, 1)  # what the engine prints must not mix with the answer, nor fill a pipe that nobody reads
    try:
        server = _serve(options, api_key)
    except RuntimeError as error:  # the engine has written the reason
        sys.exit(str(error))
    print(json.dumps({"address": server.listening_address}), file=answer, flush=True)
    while sys.stdin.readline():
        continue
    os._exit(0)  # the engine's own end can wait for requests in flight, and nobody is left who wants them


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--context-tokens", type=int, required=True, help="the window of one request")
    parser.add_argument("--alias", required=True, help="the model's name in the API")
    return parser.parse_args()


def _die_with_parent() -> None:
    # The end of the input says the same, but is not seen while the engine loads and holds the interpreter.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(options: argparse.Namespace, api_key: str) -> Any:
    # Before the import, which reads it: OpenMP threads that spin while they wait starve on a busy machine.
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
    # Repacking copies the weights, 0.6 GB, for a tenth of speed; without it they are the file's own pages.
    params.no_extra_bufts = True
    # Both cost a second at each start: a trial load to fit graphics memory, and a trial token.
    params.fit_params = False
    params.warmup = False
    # Prompts that lost their slot are kept here (28 KB a token), 8 GB of them unless told otherwise.
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

"""Runs code and shell commands that a model wrote in an isolated environment, or not at all."""

from maniple.sandbox.backend import ExecutionResult, OnOutput, SandboxBackend, SandboxSession
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.chromium import find_chromium_isolation
from maniple.sandbox.factory import open_sandbox
from maniple.sandbox.sessions import Sandbox

__all__ = [
    "BubblewrapBackend",
    "ExecutionResult",
    "OnOutput",
    "Sandbox",
    "SandboxBackend",
    "SandboxSession",
    "find_chromium_isolation",
    "open_sandbox",
]

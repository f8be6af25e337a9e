"""Traces of runs, when someone asks for them: OpenTelemetry, LangSmith, or both."""

from maniple.telemetry.tracing.tracers import Tracing, open_tracing

__all__ = ["Tracing", "open_tracing"]

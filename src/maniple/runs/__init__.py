from maniple.runs.engine import Run, RunRequest, Runs, TooManyRuns, open_runs

__all__ = ["Run", "RunRequest", "Runs", "TooManyRuns", "open_runs"]

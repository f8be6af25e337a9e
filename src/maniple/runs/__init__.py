from maniple.runs.engine import Engine
from maniple.runs.failures import (
    NotFound,
    NotWaiting,
    PlanNotOpen,
    Stopping,
    ThreadBusy,
    TooManyRuns,
    WrongPlanChange,
)
from maniple.runs.inprocess import InProcessEngine
from maniple.runs.open import open_engine
from maniple.runs.quota import DailyLimit
from maniple.runs.recovery import recover_run
from maniple.runs.request import Accepted, DoubleTexting, RunRequest
from maniple.runs.rules import Limits, Rules, Telemetry, Workplace, rules_of
from maniple.runs.spending import Spending
from maniple.runs.usage import AgentUsage

__all__ = [
    "Accepted",
    "AgentUsage",
    "DailyLimit",
    "DoubleTexting",
    "Engine",
    "InProcessEngine",
    "Limits",
    "NotFound",
    "NotWaiting",
    "PlanNotOpen",
    "Rules",
    "RunRequest",
    "Spending",
    "Stopping",
    "Telemetry",
    "ThreadBusy",
    "TooManyRuns",
    "Workplace",
    "WrongPlanChange",
    "open_engine",
    "recover_run",
    "rules_of",
]

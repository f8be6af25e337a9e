from maniple.runs.engine import (
    BranchPointGone,
    Engine,
    InvalidPlanEdit,
    NotFound,
    NothingToRetry,
    PlanNotEditable,
    RunNotWaiting,
    RunNotWorking,
    ServiceStopping,
    ThreadBusy,
    TooManyBranches,
    TooManyRuns,
    can_be_retried,
)
from maniple.runs.engine_config import (
    EngineConfig,
    ExecutionEnvironment,
    RunLimits,
    RunTelemetry,
    make_engine_config,
)
from maniple.runs.in_process import InProcessEngine, open_engine
from maniple.runs.recovery import recover_run
from maniple.runs.request import AcceptedRun, DoubleTexting, RunRequest
from maniple.runs.usage import AgentUsage, DailyLimitReached, RunUsageReader

__all__ = [
    "AcceptedRun",
    "AgentUsage",
    "BranchPointGone",
    "DailyLimitReached",
    "DoubleTexting",
    "Engine",
    "EngineConfig",
    "ExecutionEnvironment",
    "InProcessEngine",
    "InvalidPlanEdit",
    "NotFound",
    "NothingToRetry",
    "PlanNotEditable",
    "RunLimits",
    "RunNotWaiting",
    "RunNotWorking",
    "RunRequest",
    "RunTelemetry",
    "RunUsageReader",
    "ServiceStopping",
    "ThreadBusy",
    "TooManyBranches",
    "TooManyRuns",
    "can_be_retried",
    "make_engine_config",
    "open_engine",
    "recover_run",
]

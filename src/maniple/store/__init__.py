from maniple.store.export import export
from maniple.store.learned import LearnedCapabilities
from maniple.store.open import open_store
from maniple.store.protocols import (
    Artifacts,
    Checkpoints,
    EventTable,
    Keys,
    Ledger,
    RunChange,
    RunTable,
    Store,
    Threads,
)
from maniple.store.reading import stored
from maniple.store.records import (
    ApiKey,
    Artifact,
    EventRecord,
    KeyLimits,
    RunRecord,
    Thread,
    ToolCallRecord,
    Usage,
    id_of_named,
)
from maniple.store.secrets import valid_keys

__all__ = [
    "ApiKey",
    "Artifact",
    "Artifacts",
    "Checkpoints",
    "EventRecord",
    "EventTable",
    "KeyLimits",
    "Keys",
    "LearnedCapabilities",
    "Ledger",
    "RunChange",
    "RunRecord",
    "RunTable",
    "Store",
    "Thread",
    "Threads",
    "ToolCallRecord",
    "Usage",
    "export",
    "id_of_named",
    "open_store",
    "stored",
    "valid_keys",
]

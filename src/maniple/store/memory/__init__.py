from maniple.store.memory.store import open_memory

__all__ = ["open_memory"]

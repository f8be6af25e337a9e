from maniple.store.learned import LearnedCapabilities

__all__ = ["LearnedCapabilities"]

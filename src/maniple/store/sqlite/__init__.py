from maniple.store.sqlite.store import open_sqlite

__all__ = ["open_sqlite"]

"""The engine whose runs are jobs of a queue in PostgreSQL, for several machines."""

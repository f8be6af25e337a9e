"""Other protocols of the service: views of a run's log, and requests translated into calls of the engine."""

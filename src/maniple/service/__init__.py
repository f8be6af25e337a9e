"""What every protocol serves, without HTTP: the open application, and the views of its threads and runs."""

from maniple.service.opening import Service, open_service

__all__ = ["Service", "open_service"]

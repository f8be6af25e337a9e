"""The backend `browser-use`, which needs `maniple[browser-use]`. Loaded only when the settings name it."""

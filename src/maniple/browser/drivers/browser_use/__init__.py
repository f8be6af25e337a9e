"""The backend `browser-use`, which needs an environment of its own. The driver is loaded only at need."""

"""The backend `sandbox`: the browser of a sandbox over HTTP. Loaded only when the settings name it."""

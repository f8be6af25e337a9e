"""The backends besides bubblewrap; each is imported, with its SDK, only when the settings choose it."""

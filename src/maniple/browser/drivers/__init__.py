"""The only place that knows Playwright."""

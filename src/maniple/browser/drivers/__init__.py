"""The only package that uses Playwright and browser-use."""

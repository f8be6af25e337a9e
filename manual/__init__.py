"""The manual: its site, built from `docs/` (`python -m manual`)."""

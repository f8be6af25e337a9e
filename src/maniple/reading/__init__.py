"""Documents of many kinds, read into Markdown: what comes from strangers is bounded in size and time."""

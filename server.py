"""Serve the team over HTTP: the same as `maniple serve`."""

from maniple.cli import main

if __name__ == "__main__":
    main("serve")

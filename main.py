"""Talk to the team in the terminal: the same as `maniple chat`."""

from maniple.cli import main

if __name__ == "__main__":
    main("chat")

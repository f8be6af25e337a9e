"""Everyday questions with checks of their answers: twenty to work on, and twenty held out.

`HELD_OUT` shows what a change is worth for questions that it was not made with. No prompt or rule may be
written with a look at these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """A request and what its answer must have. All patterns are searched in any case."""

    kind: str
    text: str
    answer: str = ""
    """A pattern in the answer, in which numbers stand without separators of thousands."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """The files that the user uploads."""
    writes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files that must be there afterwards, each with a pattern of its whole text."""
    draws: bool = False
    """Whether the answer must name a picture that is there."""
    test: str = ""
    """Python that is run after the code in the answer; it must print `ok`."""


_NOTES = "Buy milk\nCall Anna\nPay the rent\nWater the plants\nBook the train\nFix the bike\nRead\n"
_PRICES = "item,price\nlamp,24.50\nchair,80.00\ndesk,145.50\nshelf,50.00\n"
_STORY = "The old ship sailed at dawn.\nNobody waved.\nThe sea was calm and grey.\n"
_CITIES = "city,population\nBremen,569000\nLeipzig,628000\nEssen,584000\nDresden,563000\n"

QUESTIONS = (
    Question("arithmetic", "What is 17 * 23 + 5?", r"\b396\b"),
    Question("arithmetic", "What is 15% of 240?", r"\b36(\.0+)?\b"),
    Question("arithmetic", "Sum of all primes below 100", r"\b1060\b"),
    Question("arithmetic", "计算1到50的和", r"1275"),
    Question("dates", "How many days are there between 2024-02-10 and 2024-03-15?", r"\b34\b"),
    Question("dates", "Which weekday was 20 July 1969?", r"\bsunday\b"),
    Question("strings", "Count the vowels in encyclopedia", r"(\b5\b|\bfive\b)"),
    Question("strings", "Reverse the word stressed", r"\bdesserts\b"),
    Question("strings", "How many words are in the sentence 'to be or not to be'?", r"(\b6\b|\bsix\b)"),
    Question("files", "How many lines does notes.txt have?", r"(\b7\b|\bseven\b)", {"notes.txt": _NOTES}),
    Question("files", "What is the average price in prices.csv?", r"\b75(\.0+)?\b", {"prices.csv": _PRICES}),
    Question(
        "files",
        "Write the numbers from 1 to 10 into numbers.txt, one per line",
        writes={"numbers.txt": r"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\s*"},
    ),
    Question("translation", "Translate 'Good morning, how are you?' into German", r"guten morgen"),
    Question("translation", "Was heißt 'library' auf Deutsch?", r"\bbibliothek\b|\bbücherei\b"),
    Question(
        "code",
        "Write a Python function is_prime(n) that checks whether a number is prime",
        test="print('ok' if [n for n in range(20) if is_prime(n)] == [2,3,5,7,11,13,17,19] else 'wrong')",
    ),
    Question(
        "code",
        "Write a Python program that prints the first 10 Fibonacci numbers, and run it",
        r"\b1\D+1\D+2\D+3\D+5\D+8\D+13\D+21\D+34\b",
    ),
    Question("facts", "What is the capital of France?", r"\bparis\b"),
    Question("facts", "Who wrote Romeo and Juliet?", r"\bshakespeare\b"),
    Question("facts", "How many continents are there?", r"(\b7\b|\bseven\b)"),
    Question("chart", "Draw a bar chart of apples 3, pears 5 and plums 2", draws=True),
)

HELD_OUT = (
    Question("arithmetic", "What is 987 - 654 + 21?", r"\b354\b"),
    Question("arithmetic", "What is 7 to the power of 6?", r"\b117649\b"),
    Question("arithmetic", "What is the average of 4, 8, 15, 16, 23 and 42?", r"\b18(\.0+)?\b"),
    Question("arithmetic", "Wie viele Sekunden hat ein Tag?", r"\b86400\b"),
    Question(
        "dates",
        "What date is 100 days after 1 January 2023?",
        r"2023-04-11|\b11(th)?( of)? april\b|\bapril 11\b",
    ),
    Question(
        "dates", "Is the year 1900 a leap year?", r"\bno\b\W*$|\bno[,.!]|\bnot a leap|n't a leap|\bfalse\b"
    ),
    Question("strings", "How many times does the letter s occur in mississippi?", r"(\b4\b|\bfour\b)"),
    Question(
        "strings",
        "Sort the words pear, apple, mango and banana alphabetically",
        r"\bapple\b\W+(\d\W+)?\bbanana\b\W+(\d\W+)?(and )?\bmango\b\W+(\d\W+)?(and )?\bpear\b",
    ),
    Question("strings", "Is racecar a palindrome?", r"\byes\b|\bis a palindrome\b|\btrue\b"),
    Question("files", "How many words are in story.txt?", r"(\b14\b|\bfourteen\b)", {"story.txt": _STORY}),
    Question(
        "files",
        "Which city in cities.csv has the largest population?",
        r"\bleipzig\b",
        {"cities.csv": _CITIES},
    ),
    Question(
        "files",
        "Create a file greeting.txt that contains the text Hello World",
        writes={"greeting.txt": r"hello world\s*"},
    ),
    Question("translation", "Translate 'Thank you very much' into French", r"\bmerci beaucoup\b"),
    Question("translation", "How do you say water in Spanish?", r"\bagua\b"),
    Question(
        "code",
        "Write a Python function largest(numbers) that returns the largest number of a list",
        test="print('ok' if largest([3, 9, 2]) == 9 and largest([-5, -7]) == -5 else 'wrong')",
    ),
    Question(
        "code",
        "Write an SQL query that selects all users older than 30 from the table users",
        r"select\b[^;]*\bfrom\s+users\b[^;]*\bwhere\b[^;]*>\s*30",
    ),
    Question("facts", "Who painted the Mona Lisa?", r"\bleonardo\b|\bda vinci\b"),
    Question("facts", "What is the chemical symbol for gold?", r"\bAu\b"),
    Question("facts", "How many legs does a spider have?", r"(\b8\b|\beight\b)"),
    Question("chart", "Plot the squares of the numbers from 1 to 10 as a line chart", draws=True),
)

"""Why a check objects to a citation or a claim, or decides nothing: codes with values, and sentences.

Clients show a code in their own language. Reports, terminals and models get the English sentence. A value
has no text of a source but figures and dates, because what was read is untrusted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """The reasons, each with its English sentence; `{name}` stands for a value."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> "ReasonCode":
        """Return the member with a code and the sentence for it."""
        one = str.__new__(cls, code)
        one._value_, one.sentence = code, sentence
        return one

    # Citations.
    UNKNOWN_SOURCE = "unknown_source", "there is no source {source}"
    MANY_QUOTATIONS = "many_quotations", "there are too many quotations to look them all up"
    UNREAD_ADDRESS = "unread_address", "{address} could not be read in this run: {cause}"
    UNKNOWN_ADDRESS = "unknown_address", "{address} was not opened or found in this run"
    WORDS_NOWHERE = "words_nowhere", "these words stand in no source: {words}"
    WORDS_NOT_IN_CITED = "words_not_in_cited", "these words do not stand in {source}: {words}"
    # What stands there.
    STANDS_IN_SOURCE = "stands_in_source", "{source} has {value}"
    STANDS_IN_RESULT = "stands_in_result", "a result of the run has {value}"
    NOTED = "noted", "it was noted from {source}"
    IS_COLUMN_SUM = "is_column_sum", "it is the sum of its column"
    EQUATION_HOLDS = "equation_holds", "{equation} holds"
    CALCULATED = "calculated", "calculated: {equation}"
    # What has to be in no source.
    NOTHING_TO_CHECK = "nothing_to_check", "nothing in it has to be in a source"
    GIVEN = "given", "{value} is given in the conversation"
    TEAM_SAID = "team_said", "the team has said {value}"
    PROPOSAL = "proposal", "{value} is a proposal or an example"
    # What a source or a calculation says instead.
    OTHER_VALUE = "other_value", "{source} has {found}, not {value}"
    OTHER_CELL_VALUE = "other_cell_value", "{source} has {found} in that cell, not {value}"
    OTHER_RESULT = "other_result", "a result of the run has {found}, not {value}"
    OTHER_SUBJECT = "other_subject", "{source} has {value} for something else"
    OTHER_ROW = "other_row", "in {source}, {value} is in another row"
    OTHER_COLUMN = "other_column", "in {source}, {value} is in another column"
    OTHER_CELL = "other_cell", "in {source}, {value} is in another column or row"
    RESULT_IN_OTHER_ROW = "result_in_other_row", "a result of the run has {value} in another row"
    INSTEAD = "instead", "for this it has {found}"
    POINTS = "points", "{source} has {found} points"
    OTHER_SOURCE = "other_source", "{value} stands in {source}, not in what is cited"
    WORDS_IN_OTHER_SOURCE = "words_in_other_source", "stands in {source}, not in what is cited"
    OTHER_SPEAKER = "other_speaker", "{source} gives another speaker"
    LOST_NEGATION = "lost_negation", "the ellipsis leaves out a negation"
    NAMED_SOURCE = "named_source", "{name} is {source}, and {cited} does not mention it"
    OPPOSITE_CHANGE = "opposite_change", "{source} has a change from {old} to {new}"
    EXCHANGED = "exchanged", "{source} has {value} and {other} the other way round"
    WRONG_COLUMN_SUM = "wrong_column_sum", "the sum of its column is {found}, not {value}"
    EQUATION_FAILS = "equation_fails", "{equation} does not hold: the result is {found}"
    NOT_EQUAL = "not_equal", "{equation} is not {value}"
    WRONG_CHANGE = "wrong_change", "{value} is not the change from {old} to {new}"
    WRONG_DIFFERENCE = "wrong_difference", "{equation} is not {value} of {old}"
    WRONG_SHARE = "wrong_share", "{part} of {whole} is not {value}"
    WRONG_SIDE = "wrong_side", "{value} is on the wrong side of {other}"
    NOT_THE_CHANGE = "not_the_change", "{value} is not the change of {old} and {new}"
    IS_RATIO = "is_ratio", "{value} is the ratio and not the change of {old} and {new}"
    IS_POINTS = (
        "is_points",
        "{value} is the difference in percentage points and not the change of {old} and {new}",
    )
    IS_OTHER_SHARE = "is_other_share", "{value} is the change as a share of the wrong one of {old} and {new}"
    IS_SWAPPED = "is_swapped", "{value} is the change, with digits exchanged, of {old} and {new}"
    RESULT_FOR_OTHER = "result_for_other", "a result of the run has {value} for something else"
    # What was not found.
    NOTHING_READ = "nothing_read", "nothing was read at {source}"
    IN_NO_SOURCE = "in_no_source", "{value} stands in no source"
    NOT_IN_CITED = "not_in_cited", "{value} does not stand in {source}"
    MARKED_BEFORE = "marked_before", "an earlier report gave it, and it was marked there"
    # Why nothing is decided.
    NO_RULE = "no_rule", "no rule decides it"
    ABOUT_CONVERSATION = "about_conversation", "it is about the conversation"
    NOT_STORED = "not_stored", "the text of a cited source was too long to be stored"
    NO_KNOWN_SOURCE = "no_known_source", "no cited source is known"
    PERHAPS_CALCULATED = "perhaps_calculated", "perhaps calculated: {equation}"
    UNLIKE_UNITS = "unlike_units", "perhaps calculated: {equation}, of unlike units"
    USED = "used", "used for a calculation: {equation}"
    MAY_BE_CALCULATED = "may_be_calculated", "{value} may be calculated"
    MANY_FIGURES = "many_figures", "{value} was not calculated: the report has too many figures"
    NOT_FOUND = "not_found", "{value} was not found"
    MAY_FOLLOW = "may_follow", "{value} was not found; it may follow from what is there"
    NOT_IN_CONVERSATION = "not_in_conversation", "{value} was not found in the conversation"
    ONLY_TEAM_SAID = "only_team_said", "the team has said {value}; no source or output was found for it"
    GIVEN_BEFORE = "given_before", "{value} is given before"
    CONVERSION = "conversion", "{value} is a conversion"
    BARE_DIGITS = "bare_digits", "{source} has the digits of {value} without a unit"
    OTHER_UNIT = "other_unit", "the digits of {value} stand there with another unit"
    # What only a judge is told.
    OTHER_DIRECTION = "other_direction", "a direction or order differs"
    OTHER_NEGATION = "other_negation", "a negation differs"
    UNNAMED = "unnamed", "{name} is not named there"
    OTHER_ORDER = "other_order", "two names are in another order"
    # What a judge has decided, or why it has not.
    JUDGED_EXEMPT = "judged_exempt", "nothing in it has to be in a source (judge model)"
    JUDGED_SUPPORTED = "judged_supported", "{source} says so (judge model)"
    JUDGED_CONTRADICTED = "judged_contradicted", "{source} says something else (judge model)"
    JUDGED_GIVEN = "judged_given", "the conversation says so (judge model)"
    RESULT_SUPPORTS = "result_supports", "a result says so (judge model)"
    RESULT_CONTRADICTS = "result_contradicts", "a result says something else (judge model)"
    JUDGED_NOT_IN_CITED = "judged_not_in_cited", "the judge model found it nowhere in {source}"
    JUDGED_IN_NO_SOURCE = "judged_in_no_source", "the judge model found it in no source"
    UNDECIDED = "undecided", "the judge model could not decide it"
    NOT_JUDGED = "not_judged", "not checked by the judge model"
    NO_VERDICT = "no_verdict", "the answer has no verdict on it"
    SEVERAL_VERDICTS = "several_verdicts", "the answer has several verdicts on it"
    UNKNOWN_VERDICT = "unknown_verdict", "its verdict is none of {verdicts}"
    NOT_EXEMPT = "not_exempt", "it has a figure or a date, so it is not exempt"
    UNKNOWN_PASSAGE = "unknown_passage", "its pid is no passage of the claim, nor of a source that it cites"
    UNKNOWN_SPAN = "unknown_span", "its span does not stand in the passage, word for word"
    UNRELATED_SPAN = "unrelated_span", "the sentence of its span has nothing of the claim"
    NOT_CITED = "not_cited", "only a cited source can contradict the claim"
    NOT_GIVEN = "not_given", "{value} does not stand in the sources, and the operation does not give it"
    NO_JSON = "no_json", "the answer is not the JSON that was asked for"
    NO_ANSWER = "no_answer", "it gave no answer"
    NO_REQUEST_LEFT = "no_request_left", "no request was left for it"
    NO_SECOND_REQUEST = (
        "no_second_request",
        "it did not find it, and no request was left for other passages",
    )
    TOO_LONG = "too_long", "it does not fit into the window of the model"
    MANY_CLAIMS = "many_claims", "the report has more than {most} claims"
    TIME_OVER = "time_over", "the time of the run was over"
    TOO_SLOW = "too_slow", "it took longer than {seconds} s"
    BUDGET_USED = "budget_used", "the budget of the run was used up"
    MODEL_FAILED = "model_failed", "the model failed ({error})"


@dataclass(frozen=True, slots=True)
class CheckReason:
    """A reason with the names and texts of its values."""

    code: ReasonCode
    values: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the English sentence, without a full stop."""
        return self.code.sentence.format_map(dict(self.values))


Reasons = tuple[CheckReason, ...]
"""What is known of one citation or claim. Each reason adds to the one before."""


def explain(code: ReasonCode, **values: str) -> Reasons:
    """Return one reason. Raises `KeyError` if a value of its sentence is missing."""
    reason = CheckReason(code, tuple(values.items()))
    str(reason)
    return (reason,)


def join_sentences(reasons: Iterable[CheckReason]) -> str:
    """Return the sentences of some reasons as one; "" for none."""
    return "; ".join(map(str, reasons))


def name_sources(numbers: Iterable[int]) -> str:
    """Return the numbers of sources as a report cites them: `[1], [4]`."""
    return ", ".join(f"[{number}]" for number in numbers)

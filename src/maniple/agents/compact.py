"""The workers for small local models.

Each does one narrow task, because a free ReAct loop fails half of the time. Measured with the embedded model
(seed `models.md`): a ReAct loop was right 3 times of 6, one fenced program with one repair 10 times of 12.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from maniple.agents.deliverables import PromisedFiles, promise_files
from maniple.agents.invented_numbers import find_invented_operand, find_uncalculated
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fences_to_code
from maniple.agents.middleware.text_tools import is_truncated, text_with_note
from maniple.agents.middleware.tool_calls import REJECTED, call_once
from maniple.agents.middleware.tool_errors import describe_failure
from maniple.agents.report import build_unrepaired_draft, check_addition, check_report
from maniple.agents.report_model import CheckedReportModel
from maniple.agents.task import (
    COMPACT_CALLER_CHARACTERS,
    PARTIAL_WORK,
    StepFailed,
    StepResult,
    Task,
    append_files,
    find_partial_work,
    format_caller,
    truncate_middle,
)
from maniple.errors import ManipleError, ModelError, ToolFailure
from maniple.evidence import extract
from maniple.llms import ask
from maniple.prompts import find_copied, read_examples, render
from maniple.sandbox.notes import drop_notes
from maniple.tools.code import WRITTEN
from maniple.tools.web import find_address

RESULT_CHARACTERS = 1_500
PROMPT_ONLY = 1
"""For prompts with worked examples: the number of first messages that are never left out."""


def example_messages(pairs: Sequence[tuple[str, str]]) -> Iterator[BaseMessage]:
    """Yield question and answer pairs as a conversation."""
    for question, answer in pairs:
        yield HumanMessage(question)
        yield AIMessage(answer)


async def call_tool(tool: BaseTool, number: int, **arguments: str) -> tuple[str, Mapping[str, Any]]:
    """Call `tool` as a model would, so that clients see the call and its result.

    `number` identifies the call within its task, so that a task that is executed again finds its recorded
    result. Returns the result and the arguments that the tool ran with, which may be the recorded ones or the
    user's. Raises `StepFailed` if the tool failed or the user rejected the call.
    """
    call_id = f"call_{number}"

    async def run(arguments: Mapping[str, Any]) -> ToolMessage:
        call = {"name": tool.name, "args": dict(arguments), "id": call_id, "type": "tool_call"}
        try:
            answer = await tool.ainvoke(call)
        except GraphBubbleUp:
            raise
        except Exception as error:
            if isinstance(error, ManipleError) and not isinstance(error, ToolFailure):
                raise
            failed = describe_failure(tool.name, error)
            return ToolMessage(failed, tool_call_id=call_id, name=tool.name, status="error")
        if isinstance(answer, ToolMessage):
            return answer
        return ToolMessage(str(answer), tool_call_id=call_id, name=tool.name)

    done = await call_once(tool, call_id, arguments, run)
    if not isinstance(done.answer, ToolMessage) or done.answer.status == "error":
        reason = done.answer.text if isinstance(done.answer, ToolMessage) else str(done.answer)
        raise StepFailed(reason, is_final=reason.startswith(REJECTED))
    return done.answer.text, done.arguments


_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LANGUAGE_NAME = re.compile(r"[A-Za-z][A-Za-z ()-]{1,19}")
_CHINESE = re.compile(r"(?:zh|chinese|中文)", re.IGNORECASE)
_LANGUAGES = {
    "zh": _CHINESE,
    "de": re.compile(r"de\b|german|deutsch", re.IGNORECASE),
    "fr": re.compile(r"fr\b|french|français", re.IGNORECASE),
    "es": re.compile(r"es\b|spanish|español", re.IGNORECASE),
}
"""Languages with texts of their own, by the beginning of their names. The others use English ones."""


_WORDS = {
    "English": "a an and are be by do does for from how in into is it many much of on the this to what "
    "when where which who why with write",
    "German": "das dem den der die ein eine für gibt hat heißt ist mit nach nicht sind und viele von "
    "wann warum was welche welcher wer wie wieviel wo zu",
    "French": "au combien comment dans de des du en est et la le les où pour pourquoi quand que quel "
    "quelle qui sont sur un une à",
    "Spanish": "con cuál cuándo cuánto cuántos cómo de del dónde el en es la las los para por quién qué "
    "son un una y",
    "Italian": "che chi come con cosa dei del della di dove gli il la le per perché quando quanti quanto "
    "sono un una è",
    "Portuguese": "com como da das de do dos em o onde os para por porque qual quando quantos que quem são "
    "um uma é",
    "Dutch": "de een en het hoe hoeveel in is met naar niet van waar waarom wanneer wat welke wie zijn",
}
"""Frequent short words by language, to check the language that a small model names."""
_FREQUENT = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_LETTERS = re.compile(r"[^\W\d_]+")
_NO_LANGUAGES = frozenset(
    {"bash", "c", "css", "go", "html", "java", "javascript", "markdown", "python", "sql"}
)
"""Programming languages, which a small model takes for the language of a request about code."""


def is_chinese(text: str) -> bool:
    """Return whether `text` contains Chinese characters but no Japanese or Korean ones."""
    return _HAN.search(text) is not None and _KANA_OR_HANGUL.search(text) is None


def detect_language(request: str, named: str) -> str:
    """Return the language of the request:

    By its characters if they show it, else the one that the model `named`.
    """
    if is_chinese(request):
        return "Chinese"
    if known := _find_language(request):
        return known
    if named.casefold() in _NO_LANGUAGES:
        return ""
    # For a request without letters, such as a sum, the model answers "Chinese".
    wordless = not any(character.isalpha() for character in request)
    if wordless or not _LANGUAGE_NAME.fullmatch(named) or _CHINESE.match(named):
        return "English" if wordless else ""
    return named


def _find_language(request: str) -> str:
    """Return the language with the most frequent short words in `request`; "" if there is no such one."""
    words = [word.casefold() for word in _LETTERS.findall(_QUOTED.sub("", request))]
    counts = {language: sum(word in known for word in words) for language, known in _FREQUENT.items()}
    best, second = sorted(counts, key=lambda language: -counts[language])[:2]
    return best if counts[best] > counts[second] else ""


def choose_language(request: str, locale: str) -> str:
    """Return the language to answer in: "Chinese", the `locale`, or a phrase if the language is unknown."""
    if _CHINESE.match(locale) or (not locale and is_chinese(request)):
        return "Chinese"
    return locale or "the language of the request"


def choose_examples(language: str) -> str:
    """Return the name of the plan examples to show; a small model writes its titles in their language."""
    return f"plan_{_choose_texts(language)}"


def _choose_texts(language: str) -> str:
    known = (code for code, beginning in _LANGUAGES.items() if beginning.match(language.replace("_", "-")))
    return next(known, "en")


_FROM_MEMORY = {
    "en": "(Nothing was looked up or computed: this is from the model's memory and may be wrong.{reason})",
    "zh": "（没有查询或计算任何内容：以上来自模型的记忆，可能有误。{reason}）",
    "de": "(Nichts wurde nachgeschlagen oder berechnet: Das weiß das Modell auswendig, es kann falsch sein."
    "{reason})",
    "fr": "(Rien n'a été recherché ni calculé : le modèle répond de mémoire et peut se tromper.{reason})",
    "es": "(No se ha buscado ni calculado nada: el modelo responde de memoria y puede equivocarse.{reason})",
}


_UNKNOWABLE = {
    "en": "I cannot know this: it changes, and I have no web search here to look it up.{reason}",
    "zh": "我无法知道：这类信息会变化，而这里没有网络搜索可供查询。{reason}",
    "de": "Das kann ich nicht wissen: Es ändert sich, und hier gibt es keine Websuche.{reason}",
    "fr": "Je ne peux pas le savoir : cela change, et il n'y a pas de recherche web ici.{reason}",
    "es": "No puedo saberlo: esto cambia, y aquí no tengo búsqueda web para consultarlo.{reason}",
}


def write_ignorance(language: str, reason: str = "") -> str:
    """Return the answer to what is asked about now, without a search; `reason` says how to get one."""
    return _UNKNOWABLE[_choose_texts(language)].format(reason=f" {reason}" if reason else "")


_UNSEEN = {
    "en": "(No model here sees pictures, so this is answered without {names}. Name one that does as "
    "models.vision in conf.yaml.)",
    "zh": "（这里没有能看图片的模型，因此回答时没有看到{names}。可在conf.yaml的models.vision中设置。）",
    "de": "(Kein Modell hier sieht Bilder, die Antwort kommt deshalb ohne {names} aus. Eines, das sieht, "
    "wird in conf.yaml als models.vision genannt.)",
    "fr": "(Aucun modèle ici ne voit d'images : la réponse est donnée sans {names}. Indiquez-en un dans "
    "models.vision de conf.yaml.)",
    "es": "(Ningún modelo de aquí ve imágenes: se responde sin {names}. Indique uno en models.vision de "
    "conf.yaml.)",
}


def write_unseen_note(language: str, names: Sequence[str]) -> str:
    """Return the note below an answer about the pictures that no model has seen."""
    return _UNSEEN[_choose_texts(language)].format(names=", ".join(names))


def write_memory_note(language: str, reason: str = "") -> str:
    """Return the note below an answer that nothing was looked up for; `reason` says why not."""
    return _FROM_MEMORY[_choose_texts(language)].format(reason=f" {reason}" if reason else "")


@dataclass(frozen=True, slots=True)
class CompactResearcher:
    """The researcher: it reads the page that the request names; without one it searches."""

    search: BaseTool | None
    crawl: BaseTool | None
    missing: str
    """Why search is unavailable."""

    async def work(self, task: Task) -> str:
        # A small model invents addresses, so an address in its plan is used only if there is no search.
        address = find_address(task.request)
        if address is None and self.search is None:
            address = find_address(task.description)
        if self.crawl is not None and address is not None:
            return await _read_page(self.crawl, task, url=address)
        if self.search is None:
            raise StepFailed(self.missing, is_final=True)
        return await _search_web(self.search, task)


@dataclass(frozen=True, slots=True)
class CompactBrowser:
    """The browser: it opens the page that the request names."""

    tool: BaseTool | None
    missing: str

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed(self.missing, is_final=True)
        # The plan's texts are short, so an address in them may be cut.
        named = find_address(task.request) is not None
        return await _read_page(self.tool, task, instruction=task.request if named else task.description)


async def _read_page(tool: BaseTool, task: Task, **arguments: str) -> str:
    page, _ = await call_tool(tool, 0, **arguments)
    with suppress(ValueError, KeyError, TypeError):
        page = str(json.loads(page)["result_content"])  # the format of the browser tool
    return (await asyncio.to_thread(extract, page, task.request, RESULT_CHARACTERS)).text


async def _search_web(tool: BaseTool, task: Task) -> str:
    """Return the hits of a search, each with its number on two lines."""
    found, _ = await call_tool(tool, 0, query=task.request)
    try:
        hits: list[dict[str, Any]] = [hit for hit in json.loads(found) if isinstance(hit, dict)]
    except (TypeError, ValueError):
        hits = []
    if not hits:
        return truncate_middle(found, RESULT_CHARACTERS)
    room = RESULT_CHARACTERS // len(hits)
    return "\n".join(
        truncate_middle(str(hit["note"]), room) if "note" in hit else _format_hit(hit, task.request, room)
        for hit in hits
    )


def _format_hit(hit: Mapping[str, Any], asked: str, characters: int) -> str:
    number = f"[{hit['cite']}] " if "cite" in hit else ""
    content = extract(str(hit.get("content") or ""), asked, characters).text
    return f"{number}{hit.get('title')} — {hit.get('url')}\n{content}"


PROGRAM_TOKENS = 300
_TRIES = 2
_FENCE = re.compile(r"```(?:python|py)?\s*\n(.*?)(?:```|\Z)", re.S)
_FAILURE = re.compile(r"\[(?:exit code|timeout|no output)|Traceback \(most recent call last\)")
_SILENT = "[no output"
_NUMBER_MISSING = "A number is missing: "
_MADE_UP = (
    "the model put in {number}, which is neither in the request nor in the answer before it. Ask again with "
    "every number in the question."
)
_REPEATED = "the model only printed {number}. Ask again with every number in the question."
_TOO_LONG = "The program was cut at the model's output limit, so it was not run."
_TEXT_FILE = re.compile(r"\.(?:txt|csv|tsv|md|json|ya?ml|xml|html?|log)$", re.IGNORECASE)
_SHOWN_FILES = 2
_HEADS = """for name in {names!r}:
    with open(name, errors="replace") as file:
        print(f"{{name}} begins with:", file.read(200).rstrip(), sep="\\n")"""
_CODE_LINE = "Code run:\n"
_OUTPUT_LINE = "\nOutput: "


@dataclass(frozen=True, slots=True)
class CompactCoder:
    """Writes a program and runs it. The step succeeds if the program exits without error and has output."""

    model: BaseChatModel
    tool: BaseTool | None

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed("there is no sandbox in this run, so no code can be executed", is_final=True)
        pairs = [(question, f"```python\n{code}\n```") for question, code in read_examples()["program"]]
        asked = append_files(task.request, task.files) + await self._file_heads(task)
        messages = [SystemMessage(render("compact/coder")), *example_messages(pairs), HumanMessage(asked)]
        promised = await promise_files(task, "coder", writes=True)
        result = await self._try_programs(self.tool, task, messages, promised)
        if missing := await promised.find_missing(task):
            reason = f"The program did not write the file {', '.join(missing)}."
            raise StepFailed(f"{reason}{PARTIAL_WORK}{result}", is_final=True)
        return result

    async def _try_programs(
        self, tool: BaseTool, task: Task, messages: list[BaseMessage], promised: PromisedFiles
    ) -> str:
        output, result, defined, given = "", "", "", messages[-1].text
        for number in range(_TRIES):
            answer = await self._written(messages, is_optional=bool(result))
            if answer is None:  # a doubtful result is better than running the program again in another try
                return result
            code, problem = _extract_program(answer.text), ""
            output = _TOO_LONG if is_truncated(answer) else _refuse_program(code, given, task)
            if not output:
                output, ran = await call_tool(tool, number, code=code)
                code, output = str(ran["code"]), output.strip()
                if output and not _FAILURE.search(output):
                    # What the first program defined without printing stays for the second one.
                    whole = code if _DEFINES.search(code) else f"{defined}{code}"
                    result = f"{_CODE_LINE}{whole}{_OUTPUT_LINE}{_describe_output(output)}"
                    missing = await promised.find_missing(task)
                    doubts = (f"It did not write the file {name}." for name in missing)
                    problem = find_doubt(task.request, task.files, whole, output) or next(doubts, "")
                    if not problem:
                        return result
                elif not output or output.startswith(_SILENT):
                    defined = f"{code}\n"
            messages += [
                AIMessage(f"```python\n{code}\n```"),
                HumanMessage(f"{problem or _describe_output_error(output)}\nReply with corrected code."),
            ]
        if result:  # doubtful, or followed by a program that failed: the result is shown as it is
            return result
        raise StepFailed(_describe_second_failure(output), is_final=True)

    async def _file_heads(self, task: Task) -> str:
        """Return the beginnings of the user's text files that the request names, or of the newest ones.

        Without the names of columns a small model invents them.
        """
        names = [line.rpartition(" (")[0] for line in task.files]
        names = [name for name in names if _TEXT_FILE.search(name)]
        chosen = ([name for name in names if name in task.request] or names)[-_SHOWN_FILES:]
        if not chosen or self.tool is None:
            return ""
        try:
            shown, _ = await call_tool(self.tool, _TRIES, code=_HEADS.format(names=chosen))
        except StepFailed as failure:
            if failure.is_final:
                raise
            return ""
        return "" if _FAILURE.search(shown) else f"\n{shown.strip()}"

    async def _written(self, messages: Sequence[BaseMessage], *, is_optional: bool) -> AIMessage | None:
        """Return the model's program; None if it `is_optional` and the model does not answer."""

        async def send(shown: Sequence[BaseMessage]) -> AIMessage:
            return await ask(self.model, shown, max_tokens=PROGRAM_TOKENS)

        try:
            return await send_within_window(self.model, messages, send, pinned=PROMPT_ONLY)
        except ModelError:
            if is_optional:
                return None
            raise


def _refuse_program(code: str, given: str, task: Task) -> str:
    """Return why a program is not run; "" if it is run.

    It is not if it computes what an example in the prompt does, or a follow-up with a number that is made up.
    """
    if copied := find_copied(code, given):
        return f"The program was not run: {copied} is from an example and not in the request."
    if task.number_source is None:
        return ""
    known = "\n".join([task.number_source, given, *task.user_messages])
    if invented := find_invented_operand(code, known):
        return f"{_NUMBER_MISSING}{_MADE_UP.format(number=invented)}"
    repeated = find_uncalculated(code)
    return f"{_NUMBER_MISSING}{_REPEATED.format(number=repeated)}" if repeated else ""


def _extract_program(text: str) -> str:
    found = _FENCE.search(text)
    return (found.group(1) if found else text).strip()


def _describe_output_error(output: str) -> str:
    if not output or output.startswith(_SILENT):
        return "It printed nothing. Use print."
    return f"It failed:\n{output[-300:]}"


def _describe_second_failure(output: str) -> str:
    """Return why there is no result, in one line, and below it what the program printed besides."""
    if output.startswith(_NUMBER_MISSING):
        return output
    error, printed = _find_error_line(output), drop_notes(output)
    before = printed.removesuffix(error).rstrip() if printed.endswith(error) else printed
    return f"the program failed twice: {error}\n{truncate_middle(before, RESULT_CHARACTERS)}".rstrip()


_EMPTY_VALUE = re.compile(
    r"(?:None|0(?:\.0+)?|nan|''|\"\"|\[\]|\(\)|\{\}|set\(\)"
    r"|<(?:generator|function|bound method|[\w.]+ object)\b.*>)"
)
FILE_NAME = re.compile(
    r"(?<![\w/.-])[\w-]{1,80}\.(?:txt|csv|tsv|md|json|ya?ml|xml|html?|py|log|xlsx|docx|pdf|png|jpe?g|svg)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]{2,200})'|\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”)(?!\w)")
_SIGNATURE = re.compile(r"\b([A-Za-z_]\w{0,60})\(")
_NUMBER = re.compile(r"\d{2,}")
_PICTURE = re.compile(r"\.(?:png|jpe?g|svg|pdf)\b", re.IGNORECASE)


def find_doubt(request: str, files: Sequence[str], code: str, output: str) -> str:
    """Return why a program that ran may not have done what was asked, for the model; "" if nothing shows it.

    A small model's programs often run and print a wrong value. What can be seen without understanding the
    request: a value that is empty, and a program that ignores the request's files, texts or numbers.
    """
    return next(_find_doubts(request, files, code, output), "")


def _find_doubts(request: str, files: Sequence[str], code: str, output: str) -> Iterator[str]:
    printed = find_printed(output)
    if printed and _EMPTY_VALUE.fullmatch(printed):
        yield f"It printed {printed}, which is probably wrong. Check how it gets that."
    for name in FILE_NAME.findall(request):
        is_given = any(line.startswith(name) for line in files)
        if name not in code and (is_given or name not in output):
            yield f"It does not use the file {name}."
    yield from _find_ignored(request, "\n".join([*files, code]).casefold(), output)
    if "matplotlib" in code and not FIGURES_LINE.search(output) and not _PICTURE.search(output):
        yield "It drew no picture. Save the chart with plt.savefig('chart.png')."


def _find_ignored(request: str, given: str, output: str) -> Iterator[str]:
    """Yield which texts, functions and numbers of the request the program, in lower case, does not use."""
    for text in filter(None, (text for groups in _QUOTED.findall(request) for text in groups)):
        if text.casefold() not in given:
            yield f"It does not use the text {text!r} of the request."
    for name in _SIGNATURE.findall(request):
        if not re.search(rf"\b{name.casefold()}\s*[(=]", given):
            yield f"It does not define {name}."
    numbers = _NUMBER.findall(request)
    if numbers and not any(number in given or number in output for number in numbers):
        yield f"It does not use the numbers of the request: {', '.join(numbers[:10])}."


def find_printed(output: str) -> str:
    """Return what a program printed, without the lines in brackets that the sandbox adds."""
    return drop_notes(output)


def _describe_output(output: str) -> str:
    """Return what a program printed, its figures and its files: what a report may repeat."""
    made = (line for line in output.splitlines() if FIGURES_LINE.match(line) or _WRITTEN_LINE.match(line))
    return "\n".join(filter(None, [truncate_middle(find_printed(output), RESULT_CHARACTERS), *made]))


def _find_error_line(output: str) -> str:
    """Return the line that names the error. Lines in brackets are added by the sandbox."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    own_lines = [line.strip() for line in drop_notes(output).splitlines() if line.strip()]
    return (own_lines or lines or ["it printed nothing"])[-1]


ANSWER_TOKENS = 260
_TOKENS = {"answer": ANSWER_TOKENS, "reporter": 260, "result": 120}
"""How long answers are by the prompts that they follow."""
FIGURES_LINE = re.compile(r"^\[figures drawn: (.+)\]$", re.M)
_SHOWN_LINES = 30
_PUNCTUATION = re.compile(r"[\s*_`|,'\u2019\u202f]+")
_DEFINES = re.compile(r"^(?:async def |def |class |\w+ *= *lambda\b)", re.M)
_WRITTEN_LINE = re.compile(rf"{re.escape(WRITTEN)}.*$", re.M)


@dataclass(frozen=True, slots=True)
class CompactReporter:
    """Writes the report from the results of the other workers.

    A plan that has only the reporter is answered from the model's memory, and the answer states so. A small
    model without this guidance invents results.
    """

    model: BaseChatModel
    no_search: str = ""
    """Why search is unavailable, and how to configure it."""

    async def work(self, task: Task) -> str:
        done = [result for result in task.results if result.done]
        failed = [result for result in task.results if not result.done]
        reason = _find_search_failure(task, failed) if not done else ""
        # Sentences written by code are not checked; what the members found until they failed is.
        missing = [] if reason else [result.describe_missing() for result in failed]
        missing += [result.describe_missing() for result in done if result.lacks]
        found = "\n\n".join(filter(None, (fences_to_code(find_partial_work(one.text)) for one in failed)))
        language = choose_language(task.request, task.locale)
        missing += [write_unseen_note(language, task.unseen_pictures)] if task.unseen_pictures else []
        if failed and not done and not reason:
            found = await check_report(task, found, is_scored=False) if found else ""
            return "\n\n".join(filter(None, [*missing, found]))
        text = await self._written(task, done, language)
        if not text:
            return ""
        missing += [await check_addition(task, found)] if found else []
        return "\n\n".join([text, *self._additions(done, text, language, reason), *missing])

    async def _written(self, task: Task, done: list[StepResult], language: str) -> str:
        is_computed = bool(done) and all(result.agent == "coder" for result in done)
        name = "result" if is_computed else "reporter" if done else "answer"
        prompt = render(f"compact/{name}", language=language)
        system = SystemMessage(prompt + format_caller(task.caller, COMPACT_CALLER_CHARACTERS))
        # One message for each piece, so that the longest pieces are cut rather than the middle of the whole.
        pieces = _build_material(task.request, done, language) if done else [task.request]

        # A small model is not asked for repairs.
        draft = await build_unrepaired_draft(task, language)
        model = CheckedReportModel(model=self.model, draft=draft, locale=language)

        async def send(shown: Sequence[BaseMessage]) -> AIMessage:
            material = HumanMessage("\n".join(piece.text for piece in shown[1:]))
            return await ask(model, [shown[0], material], max_tokens=_TOKENS[name])

        messages = [system, *(HumanMessage(piece) for piece in pieces)]
        return text_with_note(await send_within_window(self.model, messages, send))

    def _additions(self, done: list[StepResult], text: str, language: str, reason: str) -> Iterator[str]:
        """Yield what the model left out, and a notice if the text comes from its memory."""
        for result in done:
            if result.agent == "coder":
                yield from _left_out(result.text, text)
            yield from (line for line in _WRITTEN_LINE.findall(result.text) if line not in text)
        if not done:
            yield write_memory_note(language, reason or self.no_search)


def _find_search_failure(task: Task, failed: Sequence[StepResult]) -> str:
    """Return why nothing could be searched, if that is all that failed; "" if a page could not be read."""
    is_search = all(result.agent == "researcher" for result in failed) and not find_address(task.request)
    return failed[0].reason if failed and is_search else ""


def _left_out(result: str, text: str) -> Iterator[str]:
    """Yield what a program gave and `text` lacks: its output, its figures, and its code if it is one to use.

    A small model repeats outputs wrongly, and what a program printed is the answer.
    """
    code, mark, output = result.removeprefix(_CODE_LINE).rpartition(_OUTPUT_LINE)
    if not mark:
        return
    printed = find_printed(output)
    said = _PUNCTUATION.sub("", text).casefold()
    lines = [_PUNCTUATION.sub("", line).casefold() for line in printed.splitlines()[:_SHOWN_LINES]]
    is_file = _WRITTEN_LINE.search(output) or FIGURES_LINE.search(output)
    if not is_file and not all(line in said for line in lines):
        yield f"```\n{printed}\n```"
    for names in FIGURES_LINE.findall(output):
        yield from (f"![{name}]({name})" for name in names.split(", ") if f"]({name})" not in text)
    if _DEFINES.search(code) and _PUNCTUATION.sub("", code).casefold() not in said:
        yield f"```python\n{code.strip()}\n```"


def _build_material(request: str, done: Sequence[StepResult], language: str) -> list[str]:
    # Last and in that language; otherwise the model follows the English of the results.
    closing = "用中文回答。" if language == "Chinese" else f"Answer in {language}."
    return [
        f"Request: {request}",
        *(truncate_middle(result.text, RESULT_CHARACTERS) for result in done),
        closing,
    ]

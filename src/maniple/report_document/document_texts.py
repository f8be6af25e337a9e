"""The text in a document besides the report itself, in the document's language."""

from dataclasses import dataclass
from datetime import UTC, datetime

from maniple.evidence.record import SourceKind

_LATEST = 32_503_680_000
"""The year 3000, in Unix seconds. Later values are not times."""


@dataclass(frozen=True, slots=True)
class DocumentTexts:
    """The texts in one language. `day` is the format of a date; `months` are the names of the months."""

    contents: str
    reading: str
    finding: str
    unverified: str
    partial: str
    missing: str
    """The text for a missing figure, with its path."""
    undrawn: str
    """The text below the source of a diagram that is not drawn."""
    footnotes: str
    in_notes: str
    """The text of slides that says where the rest of their paragraphs is."""
    left_out: str
    """The text of slides that says how many more there would be."""
    day: str
    months: tuple[str, ...] = ()
    first_day: str = "1"
    """How the first day of a month is written."""
    comma: str = ", "
    """What is between a source and the day it was read or found."""

    def date(self, time: float | None) -> str:
        """Return the UTC date of a Unix time; "" for None."""
        if time is None or not 0 <= time < _LATEST:
            return ""
        at = datetime.fromtimestamp(time, UTC)
        month = self.months[at.month - 1] if self.months else str(at.month)
        day = self.first_day if at.day == 1 else str(at.day)
        return self.day.format(year=at.year, month=month, day=day)

    def got_on(self, kind: SourceKind, time: float) -> str:
        """Return the text that says when a page was read or found by a search; "" for an unknown time."""
        date = self.date(time)
        return (self.reading if kind == "page" else self.finding).format(date) if date else ""


_ENGLISH = DocumentTexts(
    contents="Contents",
    reading="read on {}",
    finding="found by a search on {}",
    unverified="What stands before this mark was not found in what the team read, or differs from it.",
    partial="The budget ran out: this report is partial.",
    missing="figure missing: {}",
    undrawn="This diagram could not be drawn; above is its source.",
    footnotes="Footnotes",
    in_notes="A paragraph that ends with … is whole in the notes of its slide.",
    left_out="Slides that are left out: {}. The other formats have the whole report.",
    day="{day} {month} {year}",
    months=(
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
)
_CHINESE = DocumentTexts(
    contents="目录",
    reading="阅读于 {}",
    finding="搜索结果，{}",
    unverified="此标记之前的内容未能在团队阅读过的资料中找到，或与其不符。",
    partial="预算已用尽：本报告并不完整。",
    missing="图片缺失：{}",
    undrawn="此图表无法绘制，以上为其源代码。",
    footnotes="脚注",
    in_notes="以“…”结尾的段落，全文见该幻灯片的备注。",
    left_out="省略的幻灯片：{} 张。其他格式包含完整报告。",
    comma="，",
    day="{year}年{month}月{day}日",
)
_LATIN_DAY = "{day} {month} {year}"
_WORDINGS = {
    "en": _ENGLISH,
    "zh": _CHINESE,
    "ja": DocumentTexts(
        contents="目次",
        reading="{}に閲覧",
        finding="検索結果、{}",
        unverified="この印の前の記述は、チームが読んだ資料の中に見つからないか、資料と異なります。",
        partial="予算を使い切ったため、この報告書は未完成です。",
        missing="図がありません：{}",
        undrawn="この図は描画できませんでした。上はそのソースです。",
        footnotes="脚注",
        in_notes="「…」で終わる段落の全文は、そのスライドのノートにあります。",
        left_out="省略したスライド：{} 枚。ほかの形式には報告書の全文があります。",
        comma="、",
        day="{year}年{month}月{day}日",
    ),
    "ko": DocumentTexts(
        contents="목차",
        reading="{} 열람",
        finding="검색 결과, {}",
        unverified="이 표시 앞의 내용은 팀이 읽은 자료에서 찾을 수 없거나 자료와 다릅니다.",
        partial="예산이 소진되어 이 보고서는 완성되지 않았습니다.",
        missing="그림 없음: {}",
        undrawn="이 다이어그램은 그릴 수 없었습니다. 위는 그 소스입니다.",
        footnotes="각주",
        in_notes="…로 끝나는 단락의 전문은 해당 슬라이드의 노트에 있습니다.",
        left_out="생략된 슬라이드: {}장. 다른 형식에는 보고서 전체가 있습니다.",
        day="{year}년 {month}월 {day}일",
    ),
    "ru": DocumentTexts(
        contents="Содержание",
        reading="прочитано {}",
        finding="найдено поиском {}",
        unverified=(
            "То, что стоит перед этой пометкой, не найдено в прочитанных источниках или расходится с ними."
        ),
        partial="Бюджет исчерпан: отчёт неполный.",
        missing="нет рисунка: {}",
        undrawn="Эту диаграмму не удалось нарисовать; выше её исходный текст.",
        footnotes="Сноски",
        in_notes="Абзац, который кончается на …, целиком стоит в заметках к слайду.",
        left_out="Пропущено слайдов: {}. В других форматах отчёт полный.",
        day="{day} {month} {year} г.",
        months=(
            *("января", "февраля", "марта", "апреля", "мая", "июня"),
            *("июля", "августа", "сентября", "октября", "ноября", "декабря"),
        ),
    ),
    "de": DocumentTexts(
        contents="Inhalt",
        reading="gelesen am {}",
        finding="durch eine Suche gefunden am {}",
        unverified=(
            "Was vor diesem Zeichen steht, fand sich nicht in dem, was das Team gelesen hat, "
            "oder weicht davon ab."
        ),
        partial="Das Budget war erschöpft: Dieser Bericht ist unvollständig.",
        missing="Abbildung fehlt: {}",
        undrawn="Dieses Diagramm ließ sich nicht zeichnen; oben steht sein Quelltext.",
        footnotes="Fußnoten",
        in_notes="Ein Absatz, der mit … endet, steht ganz in den Notizen seiner Folie.",
        left_out="Ausgelassene Folien: {}. Die anderen Formate haben den ganzen Bericht.",
        day="{day}. {month} {year}",
        months=(
            *("Januar", "Februar", "März", "April", "Mai", "Juni"),
            *("Juli", "August", "September", "Oktober", "November", "Dezember"),
        ),
    ),
    "fr": DocumentTexts(
        contents="Sommaire",
        reading="consulté le {}",
        finding="trouvé par une recherche le {}",
        unverified="Ce qui précède cette marque n’a pas été trouvé dans ce que l’équipe a lu, ou en diffère.",
        partial="Le budget est épuisé : ce rapport est incomplet.",
        missing="figure manquante : {}",
        undrawn="Ce diagramme n’a pas pu être dessiné ; sa source est ci-dessus.",
        footnotes="Notes de bas de page",
        in_notes="Un paragraphe qui finit par … est entier dans les commentaires de sa diapositive.",
        left_out="Diapositives omises : {}. Les autres formats ont le rapport entier.",
        day=_LATIN_DAY,
        months=(
            *("janvier", "février", "mars", "avril", "mai", "juin"),
            *("juillet", "août", "septembre", "octobre", "novembre", "décembre"),
        ),
        first_day="1er",
    ),
    "es": DocumentTexts(
        contents="Índice",
        reading="leído el {}",
        finding="encontrado en una búsqueda el {}",
        unverified="Lo que precede a esta marca no se encontró en lo que leyó el equipo, o difiere de ello.",
        partial="Se agotó el presupuesto: este informe está incompleto.",
        missing="falta la figura: {}",
        undrawn="Este diagrama no se pudo dibujar; arriba está su código.",
        footnotes="Notas al pie",
        in_notes="Un párrafo que acaba en … está entero en las notas de su diapositiva.",
        left_out="Diapositivas omitidas: {}. Los demás formatos tienen el informe entero.",
        day="{day} de {month} de {year}",
        months=(
            *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
            *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
        ),
    ),
    "it": DocumentTexts(
        contents="Indice",
        reading="letto il {}",
        finding="trovato con una ricerca il {}",
        unverified=(
            "Ciò che precede questo segno non è stato trovato in quanto letto dal team, o ne differisce."
        ),
        partial="Il budget è esaurito: questo rapporto è incompleto.",
        missing="figura mancante: {}",
        undrawn="Non è stato possibile disegnare questo diagramma; sopra c’è il suo codice.",
        footnotes="Note a piè di pagina",
        in_notes="Un paragrafo che finisce con … è intero nelle note della sua diapositiva.",
        left_out="Diapositive omesse: {}. Gli altri formati hanno il rapporto intero.",
        day=_LATIN_DAY,
        months=(
            *("gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno"),
            *("luglio", "agosto", "settembre", "ottobre", "novembre", "dicembre"),
        ),
        first_day="1º",
    ),
    "pt": DocumentTexts(
        contents="Sumário",
        reading="lido em {}",
        finding="encontrado numa pesquisa em {}",
        unverified="O que precede esta marca não foi encontrado no que a equipe leu, ou difere disso.",
        partial="O orçamento esgotou-se: este relatório está incompleto.",
        missing="figura em falta: {}",
        undrawn="Não foi possível desenhar este diagrama; acima está o seu código.",
        footnotes="Notas de rodapé",
        in_notes="Um parágrafo que acaba em … está inteiro nas notas do seu diapositivo.",
        left_out="Diapositivos omitidos: {}. Os outros formatos têm o relatório inteiro.",
        day="{day} de {month} de {year}",
        months=(
            *("janeiro", "fevereiro", "março", "abril", "maio", "junho"),
            *("julho", "agosto", "setembro", "outubro", "novembro", "dezembro"),
        ),
    ),
    "nl": DocumentTexts(
        contents="Inhoud",
        reading="gelezen op {}",
        finding="gevonden door een zoekopdracht op {}",
        unverified=(
            "Wat voor dit teken staat, is niet gevonden in wat het team heeft gelezen, of wijkt ervan af."
        ),
        partial="Het budget was op: dit rapport is onvolledig.",
        missing="figuur ontbreekt: {}",
        undrawn="Dit diagram kon niet worden getekend; hierboven staat de bron.",
        footnotes="Voetnoten",
        in_notes="Een alinea die eindigt met … staat volledig in de notities van de dia.",
        left_out="Weggelaten dia's: {}. De andere formaten hebben het hele rapport.",
        day=_LATIN_DAY,
        months=(
            *("januari", "februari", "maart", "april", "mei", "juni"),
            *("juli", "augustus", "september", "oktober", "november", "december"),
        ),
    ),
}
"""The texts by language, for the languages that `evidence.source_list` recognises."""


def texts_for(language: str) -> DocumentTexts:
    """Return the texts for a document in `language`, such as `zh`; English for other languages."""
    return _WORDINGS.get(language, _ENGLISH)

"""The names of the months in many languages, from the Unicode Common Locale Data Repository."""

from functools import cache

MONTHS = (
    # January to December; casefolded, genitives and abbreviations included.
    (
        "ene enero gener gennaio ian ianuarie jaan jaanuar jan janeiro januar januari january január "
        "januára janv janvier janvāris led leden ledna oca ocak saus sausio sausis sij siječanj siječnja "
        "sty styczeń stycznia tammi tammikuu tammikuuta ιαν ιανουάριοσ ιανουαρίου січ січень січня янв "
        "январь января яну януари ינואר يناير ژانویه जनवरी"
    ),
    (
        "feb febbraio febr febrer febrero februar februari februarie february február februára februāris "
        "fev fevereiro févr février helmi helmikuu helmikuuta lutego luty vas vasario vasaris veebr "
        "veebruar velj veljača veljače úno únor února şub şubat φεβ φεβρουάριοσ φεβρουαρίου лют лютий "
        "лютого фев февр февраль февраля февруари פברואר فبراير فوریه फ़रवरी"
    ),
    (
        "bře březen března kov kovas kovo maalis maaliskuu maaliskuuta maart mac mar marca march marec "
        "maret mars mart martie marts marzec marzo març março mrt márc március mär märts märz ožu ožujak "
        "ožujka μάρ μάρτιοσ μαρ μαρτίου бер березень березня мар март марта מרץ مارس मार्च"
    ),
    (
        "abr abril apr april aprile aprilie aprill apríl apríla aprīlis avr avril balandis balandžio dub "
        "duben dubna huhti huhtikuu huhtikuuta kwi kwiecień kwietnia nisan travanj travnja ápr április "
        "απρ απρίλιοσ απριλίου апр апрель апреля април квіт квітень квітня אפריל آوریل أبريل अप्रैल"
    ),
    (
        "geg gegužė gegužės kvě květen května mag maggio mai maig maijs maio maj maja may mayo mayıs mei "
        "máj mája május svi svibanj svibnja touko toukokuu toukokuuta μάι μάιοσ μαΐ μαΐου май мая "
        "трав травень травня מאי مايو مه मई"
    ),
    (
        "birželio birželis cze czerwca czerwiec giu giugno haz haziran iun iunie juin jun june junho juni "
        "junij junio juny juuni jún júna június jūn jūnijs kesä kesäkuu kesäkuuta lipanj lipnja červen "
        "června čvn ιουν ιουνίου ιούν ιούνιοσ июн июнь июня черв червень червня юни יוני يونيو ژوئن जून"
    ),
    (
        "heinä heinäkuu heinäkuuta iul iulie juil juillet jul julai julho juli julij julio juliol july "
        "juuli júl júla július jūl jūlijs liep liepa liepos lipca lipiec lug luglio srpanj srpnja temmuz "
        "července červenec čvc ιουλ ιουλίου ιούλ ιούλιοσ июл июль июля лип липень липня юли יולי يوليو "
        "ژوئیه जुलाई"
    ),
    (
        "ag ago agost agosto agu agustus août aug august augusta augusti augusts augustus augusztus avg "
        "avgust ağu ağustos elo elokuu elokuuta kolovoz kolovoza ogo ogos rugp rugpjūtis rugpjūčio sie "
        "sierpień sierpnia srpen srpna αυγ αυγούστου αύγ αύγουστοσ авг август августа серп серпень серпня "
        "אוגוסט أغسطس اوت अगस्त"
    ),
    (
        "eyl eylül rugs rugsėjis rugsėjo ruj rujan rujna sep sept september septembra septembre "
        "septembrie septembris septiembre set setembre setembro settembre syys syyskuu syyskuuta szept "
        "szeptember wrz wrzesień września zář září σεπ σεπτέμβριοσ σεπτεμβρίου вер вересень вересня сент "
        "сентябрь сентября сеп септември ספטמבר سبتمبر سپتامبر सितंबर"
    ),
    (
        "eki ekim loka lokakuu lokakuuta oct october octobre octombrie octubre okt oktober oktobris "
        "oktoober október októbra ott ottobre out outubro paź październik października spal spalio spalis "
        "říj říjen října οκτ οκτωβρίου οκτώβριοσ жовт жовтень жовтня окт октомври октябрь октября אוקטובר "
        "أكتوبر اکتبر अक्टूबर"
    ),
    (
        "kasım lapkr lapkritis lapkričio listopad listopada listopadu marras marraskuu marraskuuta "
        "noiembrie nov november novembra novembre novembris novembro noviembre stu studeni studenoga νοέ "
        "νοέμβριοσ νοε νοεμβρίου лист листопад листопада ное ноември нояб ноябрь ноября נובמבר نوامبر "
        "نوفمبر नवंबर"
    ),
    (
        "aralık dec december decembra decembrie decembris des desember desembre dets detsember dez "
        "dezember dezembro dic dicembre diciembre dis disember déc décembre gru grudnia grudzień gruod "
        "gruodis gruodžio joulu joulukuu joulukuuta prosinac prosinca prosince prosinec δεκ δεκέμβριοσ "
        "δεκεμβρίου груд грудень грудня дек декабрь декабря декември דצמבר دسامبر ديسمبر दिसंबर"
    ),
)
AMBIGUOUS_MONTHS = (
    "may mar march mars mart set out ago mag mei mai sep led jun jul lis dub bin ott eki sie maj august "
    "oca dic dez des dec nov cze paz ag gen lug giu geg wrz sty gru stu maa mac marca liepa leden vas "
    "kas"
)
"""Month names that are words of another kind in some language. They need a capital letter or a year."""

_SURE_MONTHS = {
    "da": "maj",
    "fr": "mai mars",
    "nb": "mai mars",
    "nl": "mei",
    "no": "mai mars",
    "pl": "maj",
    "ro": "mai",
    "sv": "maj mars",
}
"""Those of them that are months in their language, which writes them small, by its ISO 639 code."""


@cache
def months_by_name() -> dict[str, int]:
    """Return the number of each month's name, 1 to 12, casefolded."""
    return {name: number for number, names in enumerate(MONTHS, 1) for name in names.split()}


@cache
def ambiguous_months() -> frozenset[str]:
    """Return the names of `AMBIGUOUS_MONTHS`, casefolded."""
    return frozenset(AMBIGUOUS_MONTHS.split())


def may_be_no_month(name: str, language: str) -> bool:
    """Return whether a casefolded name of a month is a word of another kind, as far as known."""
    return name in ambiguous_months() and name not in _SURE_MONTHS.get(language, "").split()

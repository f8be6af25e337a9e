"""The names of months, in forty languages (CLDR: the formats and stand-alone forms of `MMMM` and `MMM`).

Left out: Croatian `listopad` (October), which is November in Polish and Czech, and names in other calendars.
"""

_NAMES = """
jan feb mar apr may jun jul aug sep|sept oct nov dec
january february march april may june july august september october november december
januar|jänner februar|feber märz|mär|mrz april mai juni juli august september oktober|okt november dezember|dez
janvier|janv février|fevrier|févr|fév mars avril|avr mai juin juillet|juil août|aout septembre octobre novembre décembre|decembre|déc
enero|ene febrero marzo abril|abr mayo junio julio agosto|ago septiembre|setiembre octubre noviembre diciembre|dic
gennaio|gen febbraio marzo aprile maggio|mag giugno|giu luglio|lug agosto settembre|set ottobre|ott novembre dicembre
janeiro fevereiro|fev março abril maio|mai junho julho agosto setembro outubro|out novembro dezembro|dez
januari februari maart|mrt april mei juni juli augustus september oktober november december
januari februari mars april maj juni juli augusti|aug september oktober|okt november december
januar februar marts april maj juni juli august september oktober november december|des
janúar febrúar mars apríl maí júní júlí ágúst september október nóvember desember
tammikuuta|tammikuu helmikuuta|helmikuu maaliskuuta|maaliskuu huhtikuuta|huhtikuu toukokuuta|toukokuu kesäkuuta|kesäkuu heinäkuuta|heinäkuu elokuuta|elokuu syyskuuta|syyskuu lokakuuta|lokakuu marraskuuta|marraskuu joulukuuta|joulukuu
jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember
janvāris|janvārī februāris|februārī marts|martā aprīlis|aprīlī maijs|maijā jūnijs|jūnijā jūlijs|jūlijā augusts|augustā septembris|septembrī oktobris|oktobrī novembris|novembrī decembris|decembrī
sausio vasario kovo balandžio gegužės birželio liepos rugpjūčio rugsėjo spalio lapkričio gruodžio
stycznia|sty lutego|lut marca|mar kwietnia|kwi maja|maj czerwca|cze lipca|lip sierpnia|sie września|wrz października|paź listopada|lis grudnia|gru
ledna|led února|úno března|bře dubna|dub května|kvě června|čvn července|čvc srpna|srp září|zář října|říj listopadu prosince|pro
januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra
január|jan február|febr március|márc április|ápr május|máj június|jún július|júl augusztus szeptember|szept október|okt november december
ianuarie|ian februarie martie aprilie mai iunie|iun iulie|iul august septembrie octombrie noiembrie|noi decembrie
januar|januara februar|februara mart|marta april|aprila maj|maja jun|juna jul|jula avgust|avgusta septembar|septembra oktobar|oktobra novembar|novembra decembar|decembra
siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna - studenoga|studenog prosinca
януари|яну февруари|фев март|мар април|апр май юни юли август|авг септември|сеп октомври|окт ноември|ное декември|дек
января|янв февраля|фев марта|мар апреля|апр мая июня|июн июля|июл августа|авг сентября|сен|сент октября|окт ноября|ноя|нояб декабря|дек
січня|січ лютого|лют березня|бер квітня|кві травня|тра червня|чер липня|лип серпня|сер вересня|вер жовтня|жов листопада|лис грудня|гру
ιανουαρίου|ιαν φεβρουαρίου|φεβ μαρτίου|μαρ απριλίου|απρ μαΐου|μαΐ|μαι ιουνίου|ιουν ιουλίου|ιουλ αυγούστου|αυγ σεπτεμβρίου|σεπ οκτωβρίου|οκτ νοεμβρίου|νοε δεκεμβρίου|δεκ
ocak|oca şubat|şub mart nisan|nis mayıs haziran|haz temmuz|tem ağustos|ağu eylül|eyl ekim|eki kasım|kas aralık|ara
januari februari maret april mei juni juli agustus|agt september oktober november desember|des
يناير فبراير مارس أبريل|ابريل مايو يونيو يوليو أغسطس|اغسطس سبتمبر أكتوبر|اكتوبر نوفمبر ديسمبر
جانفي فيفري - أفريل ماي جوان جويلية أوت - - - -
ינואר|ינו פברואר|פבר מרץ אפריל|אפר מאי יוני יולי אוגוסט|אוג ספטמבר|ספט אוקטובר|אוק נובמבר|נוב דצמבר|דצמ
जनवरी|जन फ़रवरी|फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर|सितम्बर अक्टूबर|अक्तूबर नवंबर|नवम्बर दिसंबर|दिसम्बर
জানুয়ারি|জানুয়ারী ফেব্রুয়ারি|ফেব্রুয়ারী মার্চ এপ্রিল মে জুন জুলাই আগস্ট সেপ্টেম্বর অক্টোবর নভেম্বর ডিসেম্বর
มกราคม|ม.ค. กุมภาพันธ์|ก.พ. มีนาคม|มี.ค. เมษายน|เม.ย. พฤษภาคม|พ.ค. มิถุนายน|มิ.ย. กรกฎาคม|ก.ค. สิงหาคม|ส.ค. กันยายน|ก.ย. ตุลาคม|ต.ค. พฤศจิกายน|พ.ย. ธันวาคม|ธ.ค.
styczeń luty marzec kwiecień - czerwiec lipiec sierpień wrzesień październik listopad grudzień
leden únor březen duben květen červen červenec srpen - říjen listopad prosinec
siječanj|sij veljača|velj ožujak|ožu travanj svibanj|svi lipanj srpanj kolovoz rujan|ruj - studeni|stu prosinac
sausis|saus vasaris|vas kovas|kov balandis gegužė|geg birželis liepa|liep rugpjūtis|rugp rugsėjis|rugs spalis|spal lapkritis|lapkr gruodis|gruod
tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu
gener febrer març - maig juny juliol agost|ag setembre - - desembre
jaan veebr marec - - junij|jūn julij|jūl avg - - - dets|dis
- - mac - - - julai ogos|ogo|agu - - - disember
январь февраль|февр - апрель - июнь июль - сентябрь октябрь ноябрь декабрь
січень лютий березень квітень|квіт травень|трав червень|черв липень серпень|серп вересень жовтень|жовт листопад|лист грудень|груд
ιανουάριος φεβρουάριος μάρτιος|μάρ απρίλιος μάιος|μάι ιούνιος|ιούν ιούλιος|ιούλ αύγουστος|αύγ σεπτέμβριος οκτώβριος νοέμβριος|νοέ δεκέμβριος
ژانویه فوریه - آوریل مه ژوئن ژوئیه اوت سپتامبر اکتبر نوامبر دسامبر
"""


def list_months() -> dict[str, int]:
    """Return the number of each month by its name in lower case."""
    months: dict[str, int] = {}
    for line in _NAMES.strip().splitlines():
        for number, names in enumerate(line.split(), 1):
            for name in names.split("|"):
                if name != "-":
                    months.setdefault(name, number)
    return months

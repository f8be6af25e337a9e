"""The names of scales, units and currencies in many languages, as data."""

THOUSAND, MILLION, BILLION, TRILLION = 3, 6, 9, 12

SCALE_WORDS = {
    "thousand thousands thsd tsd tausend mille mila mil milhar duizend тыс тысяч тысячи тысяча "
    "tusen tuhatta tuhat "
    "tys tis tisíc ezer mii χιλιάδες χιλιάδων χιλ ألف آلاف ألفا هزار אלף "
    "nghìn ngàn ribu rb тис хил хиляди tisuća tisuće hiljada hiljade tisoč tūkst": THOUSAND,
    "million millions millionen mio millones millón milhões milhão milioni milione miljoen "
    "miljoenen mln mn "
    "млн миллион миллиона миллионов мільйонів miljoner miljoonaa milj milionów miliony milionu "
    "milionů millió "
    "millioner milioane milyon εκατομμύρια εκατομμύριο εκατομμυρίων εκατ مليون مليونا ملايين میلیون ملین "
    "מיליון triệu juta jt милиона милиони мільйони мільйона milijun milijuna milijuni milijon milijona "
    "milijonov milióny miliónov miljonit miljoni miljonu miljons milijonai milijonų": MILLION,
    "bn bln milliarde milliarden mrd mrds md mds milliard milliards miliardo miliardi miljard "
    "miljarden млрд "
    "миллиард миллиарда миллиардов мільярдів miljarder miljardia mrd miliardów miliardy miliard milliárd "
    "milliarder miliarde milyar δισεκατομμύρια δισεκατομμύριο δισεκατομμυρίων δισ مليار مليارا مليارات "
    "میلیارد ارب מיליארד bilhão bilhões tỷ tỉ miliar mia милиарда милиарди мільярди мільярда "
    "milijarda milijarde milijardi milijard miliárd miljardit miljardi miljardu "
    "milijardai milijardų": BILLION,
    "trillion trillions tn trn трлн триллион триллиона триллионов billionen billones billón "
    "biliões biljoen "
    "biljoner billioner bilionów bilionu bilionů trilhão trilhões τρισεκατομμύρια τρισ تريليون تریلیون "
    "triliun trilyon טריליון": TRILLION,
    "lakh lakhs lacs لاکھ": 5,
    "crore crores cr کروڑ": 7,
}
SHORT_SCALES = frozenset(["mn", "bn", "tn", "md", "cr", "tỷ", "tỉ", "jt", "rb"])
"""The scale words of two letters that count. Others of this length are other words, too."""
MARKED_SCALES = {
    "हज़ार": 3, "ह\u095bार": 3, "हजार": 3, "लाख": 5, "मिलियन": 6, "करोड़": 7, "करो\u095c": 7,
    "अरब": 9, "खरब": 11,
    "হাজার": 3, "লাখ": 5, "লক্ষ": 5, "মিলিয়ন": 6, "কোটি": 7, "கோடி": 7, "లక్ష": 5, "కోట్ల": 7, "కోటి": 7,
    "พัน": 3, "หมื่น": 4, "แสน": 5, "ล้าน": 6, "สิบล้าน": 7, "ร้อยล้าน": 8, "พันล้าน": 9, "หมื่นล้าน": 10,
    "แสนล้าน": 11, "ล้านล้าน": 12,
}  # fmt: skip
"""Scale words of scripts whose vowels and tones are marks, which are no letters in a regular expression."""
LONG_SCALE_LANGUAGES = ("de", "fr", "es", "nl", "da", "sv", "nb", "no", "pl", "cs", "fi", "hu")
"""Languages in which `billion` is 10^12 and `trillion` 10^18."""
CJK_SCALES = {
    "万亿": 12, "萬億": 12, "兆": 12, "조": 12, "千亿": 11, "百亿": 10, "十亿": 9, "亿": 8, "億": 8, "억": 8,
    "千万": 7, "千萬": 7, "천만": 7, "百万": 6, "百萬": 6, "백만": 6, "十万": 5,
    "십만": 5, "万": 4, "萬": 4, "만": 4,
    "千": 3, "천": 3, "百": 2, "백": 2,
}  # fmt: skip

SYMBOL_PREFIXES = {
    "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "h": 2, "d": -1, "c": -2, "m": -3,
    "µ": -6, "μ": -6, "n": -9,
}  # fmt: skip
SYMBOLS = {
    # symbol: canonical unit, its factor, the prefixes that it takes
    "W": ("W", "1", "kMGTPmµμ"), "Wp": ("W", "1", "kMG"), "We": ("W", "1", "kMG"), "Wth": ("W", "1", "kMG"),
    "Wh": ("J", "3600", "kMGTP"), "J": ("J", "1", "kMGTPEm"), "eV": ("eV", "1", "kMGTm"),
    "cal": ("J", "4.184", "k"),
    "Btu": ("J", "1055.05585262", "M"), "BTU": ("J", "1055.05585262", "M"), "VA": ("VA", "1", "kMG"),
    "Hz": ("Hz", "1", "kMGT"), "V": ("V", "1", "kMmµμ"), "A": ("A", "1", "kmµμ"), "Ah": ("Ah", "1", "km"),
    "Ω": ("ohm", "1", "kM"), "N": ("N", "1", "kM"), "Nm": ("N m", "1", "k"), "Pa": ("Pa", "1", "hkMG"),
    "bar": ("Pa", "100000", "m"), "psi": ("Pa", "6894.757293168", ""), "mmHg": ("Pa", "133.322387415", ""),
    "g": ("g", "1", "kmµμnM"), "t": ("g", "1000000", "kMG"), "lb": ("g", "453.59237", ""),
    "lbs": ("g", "453.59237", ""),
    "oz": ("g", "28.349523125", ""), "m": ("m", "1", "khcdmµμn"), "dam": ("m", "10", ""),
    "ft": ("m", "0.3048", ""),
    "mi": ("m", "1609.344", ""),
    "yd": ("m", "0.9144", ""), "nmi": ("m", "1852", ""), "ha": ("m2", "10000", "M"),
    "l": ("m3", "0.001", "mcdhµμ"),
    "L": ("m3", "0.001", "mcdhµμ"), "bbl": ("m3", "0.158987294928", "kM"), "s": ("s", "1", "mµμn"),
    "min": ("s", "60", ""),
    "h": ("s", "3600", ""), "hr": ("s", "3600", ""), "hrs": ("s", "3600", ""), "B": ("B", "1", "kKMGTPE"),
    "bit": ("B", "0.125", "kMGT"), "bps": ("B/s", "0.125", "kMGT"), "KiB": ("B", "1024", ""),
    "MiB": ("B", "1048576", ""),
    "GiB": ("B", "1073741824", ""), "TiB": ("B", "1099511627776", ""), "mol": ("mol", "1", "mµμn"),
    "Bq": ("Bq", "1", "kMGTP"),
    "Sv": ("Sv", "1", "mµμ"), "Gy": ("Gy", "1", "mµμ"), "lm": ("lm", "1", ""), "lx": ("lx", "1", ""),
    "lux": ("lx", "1", ""),
    "dB": ("dB", "1", ""), "ppm": ("ppm", "1", ""), "ppb": ("ppm", "0.001", ""), "rpm": ("rpm", "1", ""),
    "mph": ("m/s", "0.44704", ""), "kph": ("m/s", "0.2777777777777777777777777778", ""),
    "kmh": ("m/s", "0.2777777777777777777777777778", ""),
    "kn": ("m/s", "0.5144444444444444444444444444", ""),
    "K": ("K", "1", ""), "px": ("px", "1", ""), "MP": ("px", "1000000", ""),
    "hp": ("W", "745.6998715822702", ""),
    "PS": ("W", "735.49875", ""), "FLOPS": ("FLOPS", "1", "kMGTPE"), "FLOPs": ("FLOPS", "1", "kMGTPE"),
    "IU": ("IU", "1", ""), "mpg": ("m/m3", "425143.7074", ""), "cmHg": ("Pa", "1333.22387415", ""),
    "Вт": ("W", "1", ""), "кВт": ("W", "1000", ""), "МВт": ("W", "1000000", ""),
    "ГВт": ("W", "1000000000", ""),
    "км": ("m", "1000", ""), "м": ("m", "1", ""), "см": ("m", "0.01", ""), "мм": ("m", "0.001", ""),
    "кг": ("g", "1000", ""),
    "т": ("g", "1000000", ""), "мг": ("g", "0.001", ""), "л": ("m3", "0.001", ""),
    "га": ("m2", "10000", ""), "ч": ("s", "3600", ""), "гм": ("m", "100", ""),
}  # fmt: skip
WORD_PREFIXES = {
    "kilo": 3, "mega": 6, "giga": 9, "tera": 12, "hecto": 2, "hekto": 2, "hectó": 2, "hectò": 2,
    "etto": 2, "гекто": 2, "deca": 1, "centi": -2, "zenti": -2,
    "milli": -3, "mili": -3,
    "micro": -6, "mikro": -6, "nano": -9, "quilo": 3, "quiló": 3, "kiló": 3, "centí": -2, "milí": -3,
    "кило": 3, "мега": 6, "гига": 9,
    "санти": -2, "милли": -3, "gigá": 9, "kilò": 3,
}  # fmt: skip
PREFIXED_NAMES = {
    "watt watts vatios ватт": ("W", "1"),
    "watthour watthours wattstunde wattstunden wattheure wattheures wattuur ваттчасов": ("J", "3600"),
    "watt-hour watt-hours watt-heure watt-heures vatios-hora watt-hora ватт-часов": ("J", "3600"),
    "joule joules julios": ("J", "1"),
    "calorie calories kalorien calorías calorias": ("J", "4.184"),
    "hertz": ("Hz", "1"),
    "volt volts": ("V", "1"),
    "ampere amperes amps": ("A", "1"),
    "pascal pascals": ("Pa", "1"),
    "gram grams gramm gramme grammes gramo gramos grama gramas grammi grammo грамм граммов грамма": (
        "g",
        "1",
    ),
    "tonne tonnes tonnen ton tons tonelada toneladas tonnellata tonnellate тонна тонны тонн tonn tonów": (
        "g",
        "1000000",
    ),
    "metre metres meter meters metern mètre mètres metro metros metri метр метра метров meters metrów": (
        "m",
        "1",
    ),
    "mètres metros": ("m", "1"),
    "litre litres liter liters litern litro litros litri литр литра литров litrów": ("m3", "0.001"),
    "byte bytes octet octets": ("B", "1"),
    "bit bits": ("B", "0.125"),
    "barrel barrels fass barils baril barriles barili barris vaten баррель баррелей барреля": (
        "m3",
        "0.158987294928",
    ),
}
PLAIN_NAMES = {
    "mile miles meile meilen milla millas miglia milhas mijl миль": ("m", "1609.344"),
    "foot feet fuß pieds pies piedi pés": ("m", "0.3048"),
    "inch inches zoll pouces pulgadas pollici polegadas": ("m", "0.0254"),
    "yard yards": ("m", "0.9144"),
    "hectare hectares hektar hectárea hectáreas ettari hectaren гектар гектаров гектара": ("m2", "10000"),
    "acre acres": ("m2", "4046.8564224"),
    "gallon gallons": ("m3", "0.003785411784"),
    "hl": ("m3", "0.1"),
    "kilo kilos kilogrammes": ("g", "1000"),
    "ounce ounces unzen onces": ("g", "28.349523125"),
    "pound pounds pfund": ("pound", "1"),
    "knot knots knoten": ("m/s", "0.5144444444444444444444444444"),
    "seconds sekunde sekunden seconde secondes segundo segundos secondi seconden sec secs секунд": (
        "s",
        "1",
    ),
    "minute minutes minuten minuto minutos minuti мин минут минуты": ("s", "60"),
    "hour hours stunde stunden std heure heures hora horas ora ore uur uren час часа часов": ("s", "3600"),
    "day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen дней дня день": (
        "s",
        "86400",
    ),
    "week weeks woche wochen semaine semaines semana semanas settimana settimane weken недель недели": (
        "s",
        "604800",
    ),
    "month months monat monate monaten mois mes meses mese mesi maand maanden месяц месяца месяцев": (
        "month",
        "1",
    ),
    "year years yr yrs jahr jahre jahren ans année années año años ano anos anno anni jaar "
    "jaren год года лет "
    "roku lat år": ("month", "12"),
    "decade decades jahrzehnt jahrzehnte jahrzehnten décennies décadas decenni": ("month", "120"),
    "century centuries jahrhunderte jahrhunderten siècles siglos secoli séculos": ("month", "1200"),
    "degree degrees grad degré degrés grado grados gradi graus градус градусов градуса": ("degree", "1"),
    "celsius": ("degC", "1"),
    "fahrenheit": ("degF", "1"),
    "kelvin": ("K", "1"),
    "cent cents centime centimes céntimos centavos centesimi ct": ("cent", "0.01"),
    "pence": ("GBP", "0.01"),
}
CURRENCY_NAMES = {
    "euro euros eur евро evro": "EUR",
    "dollar dollars dólares dólar dollari dollaro доллар доллара долларов dolarów": "$",
    "sterling quid": "GBP",
    "yuan renminbi rmb юаней юаня": "CNY",
    "yen йен иен": "JPY",
    "rupee rupees rupien roupies rupias rupie": "INR",
    "ruble rubles rouble roubles rubel руб рубль рублей рубля rublos": "RUB",
    "franken francs franc franchi": "CHF",
    "kronor kroner kronen krona krone": "kr",
    "zloty złoty złotych zł": "PLN",
    "kč korun": "CZK",
    "forint ft.": "HUF",
    "reais": "BRL",
    "lira liras": "TRY",
    "peso pesos": "MXN",
    "rand": "ZAR",
}
CURRENCY_CODES = (
    "USD EUR GBP JPY CNY RMB CHF AUD CAD NZD HKD SGD TWD KRW INR RUB BRL MXN SEK NOK DKK ISK "
    "PLN CZK HUF TRY ZAR ILS AED SAR THB IDR MYR PHP VND UAH RON BGN ARS CLP COP EGP NGN KES PKR BDT"
)
CURRENCY_SIGNS = {
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD",
    "S$": "SGD",
    "NT$": "TWD", "R$": "BRL", "MX$": "MXN", "$": "$", "＄": "$", "€": "EUR", "£": "GBP", "￡": "GBP",
    "¥": "¥", "￥": "¥", "₹": "INR",
    "₩": "KRW", "₽": "RUB", "₺": "TRY", "₪": "ILS", "₫": "VND", "₴": "UAH", "฿": "THB", "₦": "NGN",
    "Rs": "INR", "Rs.": "INR",
    "kr": "kr", "kr.": "kr", "Fr.": "CHF", "RMB": "CNY",
}  # fmt: skip
PHRASES = {
    # words: kind, canonical unit, factor
    "percentage points;percentage point;percent points;per cent points;prozentpunkte;"
    "prozentpunkten;prozentpunkt;"
    "points de pourcentage;point de pourcentage;puntos porcentuales;punto porcentual;punti percentuali;"
    "punto percentuale;pontos percentuais;ponto percentual;procentpunten;procentpunt;процентных пункта;"
    "процентных пунктов;процентный пункт;процентного пункта;п. п.;п.п.;punktów procentowych;procentenheter;"
    "procentpoint;prosenttiyksikköä;pp;ppts;ppt;p.p.;pct pts;% points;%-points;prozent-punkte": (
        "points",
        "pp",
        "1",
    ),
    "basis points;basis point;bps;basispunkte;basispunkten;points de base;puntos básicos;punti base;"
    "pontos base;basispunten": ("points", "pp", "0.01"),
    "percent;per cent;percents;pct;prozent;pour cent;por ciento;por cento;per cento;procent;"
    "процент;процента;"
    "процентов;procento;procenta;procentow;procenty;procents;prosent;prosentti;százalék;v.h.;%;відсоток;"
    "відсотка;відсотки;відсотків;процентів;проценти;τοις εκατό;%-kal;"
    "في المئة;في المائة;بالمئة;بالمائة;في المية;אחוז;אחוזים;प्रतिशत": ("percent", "%", "1"),
    "‰;permille;per mille;promille;per mil": ("percent", "%", "0.1"),
    "times;fold;mal;fach;fache;fachen;fois;veces;volte;vezes;keer;раз;раза;gånger;krát;x;×": (
        "factor",
        "x",
        "1",
    ),
    "us dollars;us dollar;u.s. dollars;american dollars;us-dollar;dollars américains;dólares "
    "estadounidenses;"
    "долларов сша;dollari usa": ("money", "USD", "1"),
    "canadian dollars;dollars canadiens": ("money", "CAD", "1"),
    "australian dollars;dollars australiens": ("money", "AUD", "1"),
    "korean won;south korean won": ("money", "KRW", "1"),
    "hong kong dollars": ("money", "HKD", "1"),
    "pounds sterling;british pounds;livres sterling;libras esterlinas;britische pfund": ("money", "GBP", "1"),
    "swiss francs;francs suisses;schweizer franken": ("money", "CHF", "1"),
    "us cents;euro cents;eurocent": ("money", "cent", "0.01"),
    "km/h;kph;km per hour;kilometres per hour;kilometers per hour;miles an hour": ("quantity", "", "1"),
    "degrees celsius;degree celsius;grad celsius;degrés celsius;grados celsius;gradi celsius;graus celsius;"
    "градусов цельсия;deg c;°c;℃": ("quantity", "degC", "1"),
    "degrees fahrenheit;grad fahrenheit;°f;℉": ("quantity", "degF", "1"),
    "nautical miles;seemeilen": ("quantity", "m", "1852"),
    "light years;light-years;lichtjahre;années-lumière;años luz;anni luce": (
        "quantity",
        "m",
        "9460730472580800",
    ),
    "millimetres of mercury;millimeters of mercury;millimeter quecksilbersäule;millimètres de mercure;"
    "milímetros de mercurio;millimetri di mercurio;milímetros de mercúrio": (
        "quantity",
        "Pa",
        "133.322387415",
    ),
    "horsepower": ("quantity", "W", "745.6998715822702"),
    "parts per million": ("quantity", "ppm", "1"),
}
DENOMINATORS = {"second": "1", "segundo": "1", "secondo": "1", "секунду": "1"}
"""Names of a second that mean something else where they stand alone: `metres per second`."""
SQUARE_WORDS = frozenset(["square", "sq", "quadrat", "vierkante", "квадратных", "кв"])
CUBIC_WORDS = frozenset(["cubic", "cu", "kubik", "kubieke", "кубических", "куб"])
SQUARE_ENDS = frozenset(
    [
        "carré",
        "carrés",
        "cuadrados",
        "quadrati",
        "quadrados",
        "cuadrado",
        "quadrato",
        "persegi",
        "kwadratowych",
    ]
)
CUBIC_ENDS = frozenset(
    ["cube", "cubes", "cúbicos", "cubi", "cúbico", "cubo", "cubos", "kubik", "sześciennych"]
)
"""What stands behind a length of which a unit of area or volume is made."""
CJK_PREFIXED_UNITS = (
    # prefixes, names of units, and the powers of the prefixes that a unit may have before it; "" is none
    (
        {"": 0, "千": 3, "兆": 6, "吉": 9, "太": 12, "百": 2, "厘": -2, "毫": -3, "微": -6, "纳": -9},
        {
            "瓦时": ("J", "3600"), "瓦時": ("J", "3600"), "瓦": ("W", "1"), "焦耳": ("J", "1"),
            "焦": ("J", "1"),
            "卡路里": ("J", "4.184"), "帕斯卡": ("Pa", "1"), "帕": ("Pa", "1"), "巴": ("Pa", "100000"),
            "赫兹": ("Hz", "1"), "赫茲": ("Hz", "1"), "赫": ("Hz", "1"), "伏特": ("V", "1"), "伏": ("V", "1"),
            "安培": ("A", "1"), "安时": ("Ah", "1"), "欧姆": ("ohm", "1"), "牛顿": ("N", "1"),
            "贝克勒尔": ("Bq", "1"), "西弗": ("Sv", "1"), "字节": ("B", "1"), "比特": ("B", "0.125"),
            "克": ("g", "1"), "米": ("m", "1"), "升": ("m3", "0.001"), "秒": ("s", "1"), "摩尔": ("mol", "1"),
            "电子伏": ("eV", "1"),
        },
    ),
    (
        {
            "": 0, "キロ": 3, "メガ": 6, "ギガ": 9, "テラ": 12, "ヘクト": 2, "センチ": -2, "ミリ": -3,
            "マイクロ": -6, "ナノ": -9,
        },
        {
            "ワット時": ("J", "3600"), "ワット": ("W", "1"), "ジュール": ("J", "1"),
            "カロリー": ("J", "4.184"),
            "パスカル": ("Pa", "1"), "バール": ("Pa", "100000"), "ヘルツ": ("Hz", "1"), "ボルト": ("V", "1"),
            "アンペア": ("A", "1"), "ベクレル": ("Bq", "1"), "シーベルト": ("Sv", "1"), "バイト": ("B", "1"),
            "ビット": ("B", "0.125"), "グラム": ("g", "1"), "メートル": ("m", "1"),
            "リットル": ("m3", "0.001"),
            "秒": ("s", "1"), "トン": ("g", "1000000"),
        },
    ),
    (
        {
            "": 0, "킬로": 3, "메가": 6, "기가": 9, "테라": 12, "헥토": 2, "센티": -2, "밀리": -3,
            "마이크로": -6,
            "나노": -9,
        },
        {
            "와트시": ("J", "3600"), "와트": ("W", "1"), "줄": ("J", "1"), "칼로리": ("J", "4.184"),
            "파스칼": ("Pa", "1"), "헤르츠": ("Hz", "1"), "볼트": ("V", "1"), "암페어": ("A", "1"),
            "베크렐": ("Bq", "1"), "시버트": ("Sv", "1"), "바이트": ("B", "1"), "비트": ("B", "0.125"),
            "그램": ("g", "1"), "미터": ("m", "1"), "리터": ("m3", "0.001"), "톤": ("g", "1000000"),
        },
    ),
)  # fmt: skip
"""Names of units that take prefixes. A longer name is found before the shorter one that it begins with."""
CJK_NEVER_ALONE = frozenset(["焦", "帕", "巴", "赫", "줄"])
"""Short names that are units only behind a prefix: 兆帕 is a megapascal, 巴西 is Brazil."""
CJK_LENGTHS = {
    "公里": "1000", "千米": "1000", "米": "1", "厘米": "0.01", "公分": "0.01", "毫米": "0.001",
    "英里": "1609.344",
    "英尺": "0.3048", "英寸": "0.0254", "キロメートル": "1000", "メートル": "1", "センチメートル": "0.01",
    "キロ": "1000", "センチ": "0.01", "킬로미터": "1000", "미터": "1", "센티미터": "0.01",
}  # fmt: skip
CJK_POWERS = {"平方": 2, "立方": 3, "제곱": 2, "세제곱": 3}
"""What stands before the name of a length: 平方公里."""
CJK_UNITS = {
    # text: kind, canonical unit, factor
    "个百分点": ("points", "pp", "1"), "百分点": ("points", "pp", "1"), "個百分點": ("points", "pp", "1"),
    "ポイント": ("points", "pp", "1"), "%ポイント": ("points", "pp", "1"),
    "퍼센트포인트": ("points", "pp", "1"),
    "%포인트": ("points", "pp", "1"), "%p": ("points", "pp", "1"), "个基点": ("points", "pp", "0.01"),
    "基点": ("points", "pp", "0.01"), "パーセント": ("percent", "%", "1"), "퍼센트": ("percent", "%", "1"),
    "프로": ("percent", "%", "1"),
    "倍": ("factor", "x", "1"), "배": ("factor", "x", "1"),
    "美元": ("money", "USD", "1"), "美金": ("money", "USD", "1"), "米ドル": ("money", "USD", "1"),
    "ドル": ("money", "$", "1"),
    "달러": ("money", "$", "1"), "欧元": ("money", "EUR", "1"), "歐元": ("money", "EUR", "1"),
    "ユーロ": ("money", "EUR", "1"),
    "유로": ("money", "EUR", "1"), "英镑": ("money", "GBP", "1"), "ポンド": ("money", "GBP", "1"),
    "日元": ("money", "JPY", "1"),
    "日圆": ("money", "JPY", "1"), "円": ("money", "JPY", "1"), "엔": ("money", "JPY", "1"),
    "人民币": ("money", "CNY", "1"),
    "港元": ("money", "HKD", "1"), "港币": ("money", "HKD", "1"), "新台币": ("money", "TWD", "1"),
    "韩元": ("money", "KRW", "1"),
    "ウォン": ("money", "KRW", "1"), "원": ("money", "KRW", "1"), "卢布": ("money", "RUB", "1"),
    "卢比": ("money", "INR", "1"),
    "瑞士法郎": ("money", "CHF", "1"), "元": ("money", "CNY", "1"), "위안": ("money", "CNY", "1"),
    "美分": ("money", "cent", "0.01"),
    "千瓦时": ("quantity", "J", "3600000"), "千瓦時": ("quantity", "J", "3600000"),
    "兆瓦时": ("quantity", "J", "3600000000"),
    "吉瓦时": ("quantity", "J", "3600000000000"), "太瓦时": ("quantity", "J", "3600000000000000"),
    "度电": ("quantity", "J", "3600000"),
    "瓦时": ("quantity", "J", "3600"), "千瓦": ("quantity", "W", "1000"),
    "兆瓦": ("quantity", "W", "1000000"),
    "吉瓦": ("quantity", "W", "1000000000"), "太瓦": ("quantity", "W", "1000000000000"),
    "瓦": ("quantity", "W", "1"),
    "キロワット時": ("quantity", "J", "3600000"), "キロワット": ("quantity", "W", "1000"),
    "メガワット": ("quantity", "W", "1000000"),
    "ギガワット": ("quantity", "W", "1000000000"), "킬로와트시": ("quantity", "J", "3600000"),
    "메가와트": ("quantity", "W", "1000000"),
    "킬로와트": ("quantity", "W", "1000"), "기가와트": ("quantity", "W", "1000000000"),
    "平方公里": ("quantity", "m2", "1000000"), "平方千米": ("quantity", "m2", "1000000"),
    "平方米": ("quantity", "m2", "1"),
    "平方メートル": ("quantity", "m2", "1"), "平方キロメートル": ("quantity", "m2", "1000000"),
    "平方キロ": ("quantity", "m2", "1000000"),
    "제곱킬로미터": ("quantity", "m2", "1000000"), "제곱미터": ("quantity", "m2", "1"),
    "㎡": ("quantity", "m2", "1"),
    "公顷": ("quantity", "m2", "10000"), "公頃": ("quantity", "m2", "10000"),
    "ヘクタール": ("quantity", "m2", "10000"),
    "헥타르": ("quantity", "m2", "10000"), "亩": ("quantity", "m2", "666.6666666666666666666666667"),
    "立方米": ("quantity", "m3", "1"), "立方メートル": ("quantity", "m3", "1"),
    "세제곱미터": ("quantity", "m3", "1"),
    "升": ("quantity", "m3", "0.001"), "毫升": ("quantity", "m3", "0.000001"),
    "リットル": ("quantity", "m3", "0.001"),
    "리터": ("quantity", "m3", "0.001"), "桶": ("quantity", "m3", "0.158987294928"),
    "バレル": ("quantity", "m3", "0.158987294928"),
    "배럴": ("quantity", "m3", "0.158987294928"),
    "公里": ("quantity", "m", "1000"), "千米": ("quantity", "m", "1000"), "米": ("quantity", "m", "1"),
    "厘米": ("quantity", "m", "0.01"),
    "毫米": ("quantity", "m", "0.001"), "英里": ("quantity", "m", "1609.344"),
    "英尺": ("quantity", "m", "0.3048"),
    "海里": ("quantity", "m", "1852"), "キロメートル": ("quantity", "m", "1000"),
    "メートル": ("quantity", "m", "1"),
    "センチ": ("quantity", "m", "0.01"), "ミリ": ("quantity", "m", "0.001"),
    "킬로미터": ("quantity", "m", "1000"),
    "미터": ("quantity", "m", "1"), "公斤": ("quantity", "g", "1000"), "千克": ("quantity", "g", "1000"),
    "毫克": ("quantity", "g", "0.001"),
    "微克": ("quantity", "g", "0.000001"), "克": ("quantity", "g", "1"), "吨": ("quantity", "g", "1000000"),
    "噸": ("quantity", "g", "1000000"), "トン": ("quantity", "g", "1000000"),
    "キログラム": ("quantity", "g", "1000"),
    "グラム": ("quantity", "g", "1"), "톤": ("quantity", "g", "1000000"),
    "킬로그램": ("quantity", "g", "1000"),
    "그램": ("quantity", "g", "1"),
    "摄氏度": ("quantity", "degC", "1"), "℃": ("quantity", "degC", "1"), "华氏度": ("quantity", "degF", "1"),
    "度": ("quantity", "degree", "1"),
    "年间": ("quantity", "month", "12"), "年間": ("quantity", "month", "12"),
    "年": ("quantity", "month", "12"), "周年": ("quantity", "month", "12"),
    "岁": ("quantity", "month", "12"), "歳": ("quantity", "month", "12"), "년": ("quantity", "month", "12"),
    "세": ("quantity", "month", "12"),
    "个月": ("quantity", "month", "1"), "個月": ("quantity", "month", "1"),
    "か月": ("quantity", "month", "1"),
    "ヶ月": ("quantity", "month", "1"),
    "개월": ("quantity", "month", "1"), "周": ("quantity", "s", "604800"),
    "週間": ("quantity", "s", "604800"), "天": ("quantity", "s", "86400"),
    "日間": ("quantity", "s", "86400"), "일": ("quantity", "s", "86400"), "小时": ("quantity", "s", "3600"),
    "小時": ("quantity", "s", "3600"),
    "時間": ("quantity", "s", "3600"), "시간": ("quantity", "s", "3600"), "分钟": ("quantity", "s", "60"),
    "分鐘": ("quantity", "s", "60"),
    "毫米汞柱": ("quantity", "Pa", "133.322387415"), "毫米水银柱": ("quantity", "Pa", "133.322387415"),
    "毫米水銀柱": ("quantity", "Pa", "133.322387415"), "厘米汞柱": ("quantity", "Pa", "1333.22387415"),
    "毫米水柱": ("quantity", "Pa", "9.80665"), "厘米水柱": ("quantity", "Pa", "98.0665"),
    "大卡": ("quantity", "J", "4184"), "千卡": ("quantity", "J", "4184"), "克拉": ("quantity", "g", "0.2"),
    "公升": ("quantity", "m3", "0.001"),
    "公分": ("quantity", "m", "0.01"), "分米": ("quantity", "m", "0.1"),
    "光年": ("quantity", "m", "9460730472580800"),
    "吨公里": ("quantity", "g·m", "1000000000"), "トンキロ": ("quantity", "g·m", "1000000000"),
    "人公里": ("quantity", "person·m", "1000"), "人キロ": ("quantity", "person·m", "1000"),
    "秒": ("quantity", "s", "1"), "초": ("quantity", "s", "1"),
}  # fmt: skip
HEDGES = {
    # Phrases before a figure, of one to four words.
    "about": "about;around;approximately;approx;roughly;some;circa;ca;close to;in the region of;an "
    "estimated;estimated;rund;etwa;"
    "ungefähr;annähernd;zirka;environ;près de;quelque;autour de;unos;unas;aproximadamente;cerca de;"
    "alrededor de;intorno a;à peu près;"
    "ongeveer;rond;zowat;около;примерно;приблизительно;порядка;ungefär;cirka;omkring;noin;około;"
    "zhruba;asi;aproximativement;"
    "approximativement;just around;mintegy;körülbelül;nagyjából;kb;yaklaşık;περίπου;приблизно;близько;"
    "майже;mniej więcej;přibližně;"
    "نحو;حوالي;~;≈;∼;±;约;約;大约;大約;大概;接近;约为;約為;およそ;약;대략",
    "over": "over;exceeding;above;at least;more than;upwards of;just over;well over;über;mehr als;"
    "mindestens;gut;au moins;plus de;"
    "más de;mais de;più di;oltre;almeno;al menos;pelo menos;ruim;meer dan;minstens;более;свыше;"
    "больше;не менее;ponad;över;yli;понад;több mint;přes;πάνω από;أكثر من;"
    "mer än;över;minst;mere end;mer enn;mindst;więcej niż;powyżej;co najmniej;více než;alespoň;peste;"
    "mai mult de;cel puțin;legalább;vähintään;yli;en az;περισσότερο από;τουλάχιστον;"
    "greater than;no fewer than;>;≥;超;超过;超過;逾;高达;至少",
    "under": "under;below;less than;fewer than;nearly;almost;at most;up to;just under;unter;weniger als;"
    "höchstens;knapp;fast;nahezu;not quite;just short;short of;nicht ganz;niet helemaal;nie całkiem;"
    "не совсем;téměř;skoro;prawie;nästan;lähes;melkein;majdnem;közel;σχεδόν;ما يقارب;neredeyse;"
    "bis zu;moins de;presque;jusqu'à;quasiment;menos de;casi;quase;meno di;quasi;onder;minder dan;"
    "bijna;менее;меньше;почти;до;"
    "mindre än;högst;mindre end;mindre enn;højst;høyst;mniej niż;poniżej;co najwyżej;méně než;nejvýše;"
    "mai puțin de;cel mult;legfeljebb;enintään;en fazla;λιγότερο από;το πολύ;"
    "<;≤;不到;不足;近;将近;低于;未满;ほぼ;거의",
}
HEDGES_BEHIND = {
    "about": "or so;左右;上下;程度;前後;정도;가량",
    "over": "or more;以上;余;餘;多;超;이상;여",
    "under": "or less;以下;以内;未満;이하;미만",
}

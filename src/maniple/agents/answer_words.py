"""Words by which tasks and answers are understood without a model, in the languages of most requests.

They are for what has no form of its own: whether a file is read or written, and whether something was done,
not done, or only described. A language that is missing here is judged by form alone.
"""

import re

MODALITY = re.compile(
    r"(?P<unable>"
    r"\b(?:can(?:not|[’']t|\s+not)|could(?:\s+not|n[’']t)|unable|not (?:able|possible)|impossible"
    r"|(?:kann|konnte|könnte)\w{0,2}\b[^.!?\n]{0,60}\b(?:nicht\w*|kein\w*)|unmöglich"
    r"|nicht möglich"
    r"|ne p(?:eux|eut|ouvons|ourrais?)|n[’'](?:ai|a|avons) pas pu|no (?:puedo|pude|se puede)|non posso"
    r"|(?:does|do|did)(?: not|n[’']t) exist|no such|not found|is missing|fehlt"
    r"|existier\w* nicht|nicht vorhanden"
    r"|n[’']existe\w* pas|introuvables?|no existe|non esiste)\b"
    r"|无法|不能|没办法|無法|不存在|找不到|できません|存在しません|할 수 없)"
    r"|(?P<negated>\b(?:not|never|\w+n[’']t|nothing|nicht|nichts|nie|kein\w*|pas|rien|jamais|nunca|nada)\b"
    r"|没有?|未|不|别|ません|않)"
    r"|(?P<explained>\b(?:how (?:to|do|does|can|could|would|should)|wie (?:man|ich|kann)|comment|cómo)\b"
    r"|如何|怎么|怎样)"
    r"|(?P<conditional>\b(?:if|when|unless|falls|wenn|sobald|si|lorsque|quand|cuando)\b|如果|要是|若)"
    r"|(?P<possible>\b(?:can|could|would|will|should|may|might|kann|kannst|könnte\w*|würde\w*|wird|sollte\w*"
    r"|peux|peut|pourrait|pourrez|puede\w*)\b|可以|会|将)"
    r"|(?P<relative>\b(?:that|which|who|whose|dass|welche\w?|qui|que|dont)\b)",
    re.IGNORECASE,
)
"""What turns an order or a claim into something else.

It cannot be or something is missing, it is not, it may be, or it is only spoken about.
"""

CLAUSE_ENDS = re.compile(
    r"[,，、:：(]|\b(?:and|but|then|und|aber|dann|et|mais|puis|y|pero)\b|和|并|然后", re.IGNORECASE
)

FILE_ROLES = re.compile(
    r"(?P<example>\b(?:(?:as|like) in|wie in|comme dans|como en)\b)"
    r"|(?P<target>\b(?:as|als|sous|como)\b|(?:保存|另存|存储|写|寫|转换|转|導出|导出|输出|做|画|命名)?[成为為到入至]"
    r"|に)"
    r"|(?P<weak>\b(?:to|into|in|at|under|nach|unter|im|ins|dans|en|a)\b)"
    r"|(?P<write>\b(?:writ(?:e|ing)|sav(?:e|ing)|creat(?:e|ing)|generat(?:e|ing)|export(?:ing)?|produc(?:e|ing)"
    r"|stor(?:e|ing)|output|deliver|provide|put|make|build|draw|plot|render|compile|prepare|draft"
    r"|design"
    r"|schreib\w*|speicher\w*|erstell\w*|erzeug\w*|exportier\w*|generier\w*|zeichne\w*"
    r"|anlegen|leg(?:e|en)?|verfasse\w*|bau(?:e|en)?|abspeichern"
    r"|écri\w*|enregistr\w*|cré(?:er?|ez|ons)|génér\w*|sauvegard\w*|export\w*|produi\w*|dessin\w*|rédige\w*"
    r"|escrib\w*|guard\w*|crea|crear|gener\w*|scriv\w*|salva\w*)\b"
    r"|写|寫|保存|存储|生成|创建|創建|建立|导出|输出|制作|画|作成|書|저장|생성)"
    r"|(?P<carry>\b(?:convert|copy|move|pack|rename|zip|konvertier\w*|kopier\w*|verschieb\w*|wandle|umwandeln"
    r"|benenne|umbenennen|conver\w*|copi\w*|déplac\w*|renomm\w*|muev\w*|mover|renombr\w*)\b"
    r"|复制|移动|重命名|转换)"
    r"|(?P<read>\b(?:from|of|about|like|using|read\w*|open\w*|load\w*|pars(?:e|es|ing)|analy[sz]\w*|check\w*"
    r"|see|use|inspect\w*|compare\w*"
    r"|von|aus|über|zu|wie|anhand|les\w*|lies|öffne\w*|lade\w*|prüf\w*|siehe|nutze\w*|vergleiche\w*"
    r"|d[eu]|des|depuis|comme|sur|li[rst]\w*|ouvr\w*|voir|compar\w*|desde|lee\w*|abr\w*)\b"
    r"|读取|读|打开|根据|从|基于|把|将|用|见|看|を)",
    re.IGNORECASE,
)
"""What a word before the name of a file says: that the file is written, or only read.

Weak words say so only together with one that writes, or that carries a file to another.
"""

WRITTEN = re.compile(
    r"\b(?:saved|written|wrote|created|generated|stored|exported|produced|attached|built|delivered"
    r"|gespeichert|geschrieben|erstellt|erzeugt|angelegt|abgelegt|exportiert|generiert"
    r"|enregistré\w*|sauvegardé\w*|écrit\w*|créée?s?|générée?s?|exportée?s?"
    r"|guardad\w+|cread\w+|escrit\w+|generad\w+|salvat\w+|creat\w|scritt\w|salvo|criado|gerado"
    r"|opgeslagen|aangemaakt|geschreven|zapisan\w+|utworzon\w+|skapa\w+|sparad\w*"
    r"|сохран\w+|созда\w+|запис\w+)\b|保存|写入|生成|创建|寫入|創建|导出|作成|書き込|저장|생성",
    re.IGNORECASE,
)
"""Words for having written something."""

RAN = (
    r"\b(?:I|we)(?:[’']ve| have)?(?: \w+ly| just| now| also)? (?:ran|run|executed|tested|profiled|benchmarked"
    r"|compiled|installed|deployed)\b"
    r"|\b(?:was|were|has been|have been) (?:\w+ly )?(?:run|executed|tested|compiled|deployed)\b"
    r"|\b(?:tests?|checks?|suite|builds?)\b[^.\n]{0,40}\b(?:pass|passes|passed|succeeded|(?:is|are) green)\b"
    r"|\b(?:all|\d+) (?:\w+ )?passed\b|\bexit code:? \d"
    r"|\b(?:computed|calculated|verified|checked|counted)\b[^.\n]{0,30}\b(?:with|using|by|in) "
    r"(?:python|code|an? (?:program|script)|bash)\b"
    r"|\bmit (?:python|einem (?:programm|skript))\b[^.\n]{0,60}\b(?:be|aus|nach)ge?rechnet"
    r"|\bcalculé\w*\b[^.\n]{0,30}\bavec (?:python|un (?:programme|script))\b|用\s?python\s?(?:计算|算)"
    r"|\bhabe\b[^.\n]{0,80}\b(?:ausgeführt|getestet|installiert|gemessen|laufen lassen)\b"
    r"|\bwurden?\b[^.\n]{0,60}\b(?:ausgeführt|getestet|installiert)\b"
    r"|\btests?\b[^.\n]{0,40}\b(?:bestanden|grün|erfolgreich|laufen durch)\b"
    r"|\b(?:j[’']ai|nous avons|a été|ont été) (?:exécuté|lancé|testé|installé)\w{0,2}\b"
    r"|\btests?\b[^.\n]{0,40}\b(?:passent|réussis?|passés)\b"
    r"|\b(?:he|hemos|se ha|se han) (?:ejecutado|probado|instalado)\b|\bpruebas\b[^.\n]{0,40}\bpasa\w*\b"
    r"|\b(?:ejecuté|probé|instalé)\b"
    r"|(?:已|已经|成功|我)(?:运行|执行|测试|安装)了?|(?:运行|执行|测试)了|测试[^。\n]{0,20}通过"
)
"""Words that say that a program was run, as a pattern."""

EXECUTED = re.compile(
    rf"{RAN}|\b(?:I|we)(?:[’']ve| have)?(?: \w+ly| just| now| also)? (?:downloaded|browsed|searched)\b"
    r"|\bhabe\b[^.\n]{0,80}\bheruntergeladen\b"
    r"|\b(?:j[’']ai|nous avons|a été|ont été) téléchargé\w{0,2}\b",
    re.IGNORECASE,
)
"""Words that say that something was run, or fetched by a program."""

_OBJECT = (
    r"(?:the|this|that|these|it|them|an?|my|our|your|all|both|its|whether|me|how|if|for|each|every|two|three)"
)
_ACT = (
    "run|execute|test|start|launch|send|book|buy|open|visit|measure|benchmark|profile|install|download"
    "|upload|deploy"
)
_LOOK = "search|check|verify|count|monitor"
TOOL_WORK = re.compile(
    rf"(?P<acts>\b(?:{_ACT}) {_OBJECT}\b|^(?:{_ACT})\b|(?<=[.!?;,] )(?:{_ACT})\b|(?<=\band )(?:{_ACT})\b"
    r"|\b(?:führe?\b[^.!?\n]{0,60}\baus|ausführen|lass\w*\b[^.!?\n]{0,60}\blaufen|testen?|installier\w*"
    r"|lade\b[^.!?\n]{0,60}\bherunter|herunterladen|starten?|senden?|schicken?|buchen?|bestellen?|kaufen?|miss"
    r"|messen|öffnen?|exécut\w*|lance[rz]?|teste[rz]|install(?:e|er|ez)|télécharge[rz]?|envoie|envoyer|envoyez"
    r"|réserve[rz]?|commandez?r?|mesure[rz]|ejecut\w*|prueba|instala\w*|descarga\w*|envía\w*|reserva)\b"
    r"|运行|执行|测试|安装|下载|上传|启动|发送|预订|订购|购买|打开|访问|実行)"
    rf"|(?P<looks>\b(?:{_LOOK}) {_OBJECT}\b|^(?:{_LOOK})\b|(?<=\band )(?:{_LOOK})\b"
    r"|\b(?:look up|find out|comput(?:e|ing)|calculat(?:e|ing)|suchen?|finde\b[^.!?\n]{0,60}\bheraus"
    r"|herausfinden|prüfen?|überprüf\w*|zählen?|berechn\w*|cherche[rz]?|rechercher|vérifie[rz]?|compter|comptez"
    r"|calcul(?:e|er|ez)|busca|verifica|calcula"
    r"|(?:what|was|wie|quel\w*|current|latest|aktuell\w*|neueste\w*|derni\w*)\b[^.!?\n]{0,30}"
    r"\b(?:weather|news|prices?|Wetter|Nachrichten|Preis\w*|météo|temps|nouvelles|prix))\b"
    r"|搜索|查找|查一下|查看|检查|统计|计算|天气|最新|检索|検索|調べ|計算)",
    re.IGNORECASE | re.MULTILINE,
)
"""Words of a task that only tools can do: acting on something, or looking it up."""

ANNOUNCES = re.compile(
    r"(?:(?:ok(?:ay)?|good|great|alright|so|gut|also|bon|bien)[,.!]?\s+)?(?:"
    r"(?:now|next|first),? (?:i|let)\b|let me(?! (?:know|show|explain))\b|let[’']s\b"
    r"|i(?:[’']ll| will) (?:now|first|start|begin|proceed|continue)\b|i[’']?(?: a)?m (?:now )?going to\b"
    r"|i(?:[’']ll| will) [^.!?\n]{1,80} (?:now|next)\W*$"
    r"|(?:jetzt|nun|als nächstes|zuerst) (?:\w+ ){1,2}?ich\b"
    r"|ich \w+ (?:jetzt|nun|zuerst)\b|lass mich\b|ich werde (?:jetzt|nun|zuerst)\b"
    r"|je vais (?:maintenant )?\w+er\b|(?:maintenant|d[’']abord),? je\b|je commence par\b"
    r"|laisse[zr]?[- ]moi\b|ahora (?:voy|lo|la)\b|voy a\b|déjame\b"
    r"|(?:现在|接下来|下面|首先)[，,]?(?:我|让我|来)|让我|我(?:现在|将|来|这就)|我先)",
    re.IGNORECASE,
)
"""Beginnings of a sentence that says what its speaker does next."""


NEED = re.compile(
    r"\b(?:need(?:s|ed)?|requir(?:e|es|ed|ements?)|missing|lack(?:s|ing|ed)?|necessary"
    r"|brauch\w*|bräucht\w*|benötig\w*|fehl(?:t|te|en|ten|end\w*)|nötig\w*|erforderlich\w*"
    r"|besoin|nécessaires?|manqu\w+|requis\w*|faut|faudrait|necesit\w+|falta\w*|requier\w+|hac\w+ falta"
    r"|mancan\w*|necessari\w*|(?:would|could) help|helfen würden?|hilfreich wären?|aiderai(?:t|ent)"
    r"|ayudarían?|aiuterebbe(?:ro)?|serv(?:e|ono|irebbe)|ajudaria\w*|precis[ao]\w*|nodig|ontbreek\w*|helpen"
    r"|нуж\w+|требу\w+|поможет|помогл\w+|не хватает)\b|需要|缺|必要|必須|不足|足りない|부족|필요|도움",
    re.IGNORECASE,
)
"""Words for what is needed or missing."""

OWN_NEED = re.compile(
    r"\b(?:I|we)(?:[’']d|[’']ll)?(?: (?:would|will|do|still|also|first|only|really|must|\w+ly)){0,3}"
    r" (?:need|require|lack|have to (?:know|have|get))\b"
    r"|\b(?:please|could you|can you) (?:provide|send|share|give|tell|upload|supply|add|name|let)\b"
    r"|\b(?:bräuchten?|brauche|benötige|mir fehl\w+|uns fehl\w+|wir (?:brauchen|benötigen))\b"
    r"|\bbitte\b[^.!?\n]{0,60}\b(?:send\w*|schick\w*|gib|geben|teil\w*|nenn\w*|lad\w*)\b"
    r"|\b(?:j[’']ai(?:rais)? besoin|nous avons besoin|il (?:me|nous) (?:faut|faudrait|manque))\b"
    r"|\b(?:necesito|necesitamos|necesitaría|me falta\w*|nos falta\w*)\b"
    r"|我们?(?:还|仍)?(?:需要|缺)|请(?:提供|告诉|上传)",
    re.IGNORECASE,
)
"""Words with which somebody says in a sentence what it needs itself."""


FAILED = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures)?|errors?|time(?:d |-)?outs?|timed out|reject\w*|refus\w*|den(?:y|ies|ied)"
    r"|declin\w*|forb\w+|unavailable|unreachable|unreadable|inaccessible|damaged|corrupt\w*|encrypted|blocked|broken|down"
    r"|fehlgeschlagen|gescheitert|scheiter\w*|schlug\w* fehl|fehler\w*|abgelehnt|verweiger\w*|beschädigt"
    r"|gesperrt|verschlüsselt|unlesbar|unerreichbar|zeitüberschreitung"
    r"|échou\w*|échec|erreurs?|refusé\w*|rejeté\w*|endommagé\w*|illisible|inaccessible|bloqué\w*"
    r"|fall(?:ó|aron|ado)|fallos?|errores|rechazad\w+|denegad\w+|dañad\w+|ilegible|bloquead\w+"
    r"|fallit\w|errore|rifiutat\w|danneggiat\w)\b"
    r"|失败|失敗|错误|錯誤|出错|超时|拒绝|损坏|加密|エラー|拒否|실패|오류|거부",
    re.IGNORECASE,
)
"""Words for something that failed or was refused."""

OWN_FAILURE = re.compile(
    r"\b(?:I|we) (?:could ?not|couldn[’']t|can ?not|can[’']t|failed) \w"
    r"|\b(?:I|we) (?:was|were|am|are) (?:not able|unable) \w"
    r"|\bich (?:konnte|kann)\b[^.!?\n]{0,80}\b(?:nicht|kein\w*)\b"
    r"|\b(?:konnte|kann) ich\b[^.!?\n]{0,80}\b(?:nicht|kein\w*)\b"
    r"|\bje n[’'](?:ai|arrive) pas\b|\bje ne (?:peux|pouvais) pas\b|\bnous n[’']avons pas pu\b"
    r"|\bno (?:pude|puedo|pudimos|podemos|he podido|hemos podido)\b"
    r"|我们?(?:无法|不能|没能|没有办法)",
    re.IGNORECASE,
)
"""Words with which somebody says in a sentence what it could not do itself."""

_EXCEPT = r"(?:except|apart from|aside from|other than|save for|but for)"
OWN_EXCEPTION = re.compile(
    r"\b(?:I|we)(?: have| could| was able to|[’']ve)? (?:found?|got|get|read|did|done|finish(?:ed)?"
    r"|completed?|cover(?:ed)?|collect(?:ed)?|check(?:ed)?|wrote|written|have)"
    rf"\b[^.!?\n]{{0,30}}\b(?:everything|all)\b[^.!?\n]{{0,60}}\b{_EXCEPT}\b"
    r"|\b(?:everything|all)\b[^.!?\n]{0,40}\b(?:done|found|completed?|finished|covered|collected|included"
    rf"|answered|obtained|read|there|here),? {_EXCEPT}\b"
    rf"|^\W{{0,6}}(?:(?:all|everything) )?(?:is )?(?:done|complete|finished),? {_EXCEPT}\b"
    rf"|^\W{{0,6}}(?:everything|all of it) {_EXCEPT}\b[^.!?\n]*\b(?:is|was) "
    r"(?:done|found|there|here|complete)\b"
    r"|\balles\b[^.!?\n]{0,30}\b(?:erledigt|gefunden|fertig|gelesen|geschafft)\b[^.!?\n]{0,10}"
    r"\b(?:außer|bis auf)\b|\bhaben?\b[^.!?\n]{0,20}\balles\b[^.!?\n]{0,30}\b(?:außer|bis auf)\b"
    r"|\b(?:j[’']ai|nous avons)\b[^.!?\n]{0,20}\btout\b[^.!?\n]{0,30}\bsauf\b"
    r"|\btout est (?:fait|terminé|complet|là)\b[^.!?\n]{0,10}\bsauf\b"
    r"|\b(?:he|hemos)\b[^.!?\n]{0,25}\btodo\b[^.!?\n]{0,30}\b(?:excepto|salvo|menos)\b"
    r"|\btodo está (?:hecho|completo|listo)\b[^.!?\n]{0,10}\b(?:excepto|salvo|menos)\b"
    r"|除[^。\n]{1,40}(?:外|之外|以外)[^。\n]{0,10}(?:都|均|全部)?已?(?:完成|找到|获取|获得)",
    re.IGNORECASE,
)
"""Words with which somebody says in a sentence that it did everything but something."""


FROM_KNOWLEDGE = re.compile(
    r"\b(?:(?:what|facts|things|all) (?:that )?you (?:already )?know"
    r"|from (?:your )?(?:own )?(?:memory|knowledge)"
    r"|was du (?:schon )?weißt|aus dem (?:gedächtnis|kopf)|dein\w* (?:allgemein)?wissen"
    r"|ce que tu sais|ce que vous savez|de mémoire|lo que sabes|de memoria)\b|(?:你|您)(?:所)?知道的|凭记忆",
    re.IGNORECASE,
)
"""Words of a task that is content with what its member knows."""


LIMITS = re.compile(
    r"\b(?:only|merely|skip\w*|omit\w*|left out|instead of|without having|yet to"
    r"|nur|lediglich|bloß|ausgelassen|übersprungen|weggelassen|anstatt"
    r"|seule?(?:ment|s)?|uniquement|omis\w*|sauté\w*|sans avoir"
    r"|s[oó]lo|solamente|únicamente|omitid\w+|saltad\w+|soltanto|apenas|somente)\b|只|仅|跳过|省略|だけ|のみ|만",
    re.IGNORECASE,
)
"""Words with which a part is left out."""

ACCESS = re.compile(
    r"\b(?:I|we|read\w*|open\w*|load\w*|reach\w*|access\w*|visit\w*|view\w*|fetch\w*|retriev\w*|check\w*"
    r"|respon\w*|downloaded|seen|looked|processed|considered|included"
    r"|ich|wir|gelesen|lesen|geöffnet|öffnen|geladen|laden|erreich\w*|aufgerufen|aufrufen|geprüft|gesehen"
    r"|berücksichtigt|angesehen"
    r"|je|nous|j[’']\w*|lu\w{0,2}|lire|ouvert\w*|ouvrir|chargé\w*|consulté\w*|accéd\w*|vérifié\w*"
    r"|he|hemos|pude|pudimos|leíd\w+|leer|abiert\w+|abrir|cargad\w+|consultad\w+|acced\w*"
    r"|letto|letta|aperto|aperta|caricat\w|lido|lida|aberto|aberta)\b"
    r"|我|读|讀|打开|訪問|访问|查看|看|開|読|열|읽",
    re.IGNORECASE,
)
"""Words for who reads what in a sentence about one's own work."""

SOURCES = re.compile(
    r"\b(?:pages?|sites?|websites?|address\w*|links?|servers?|files?|documents?|seiten?|adressen?|dateie?n?"
    r"|dokumente?|fichiers?|adresses?|páginas?|archivos?|sitios?|pagin[ae])\b|页|頁|网站|文件|ページ|페이지|파일",
    re.IGNORECASE,
)
"""Words for what is read."""

MENTIONS = re.compile(
    r"\b(?:link(?:s|ing|ed)? to|mention\w*|includ(?:e|es|ing)|insert\w*|add|cite|citing|append\w*|sign\w*"
    r"|verlink\w*|erwähn\w*|einfüg\w*|füge|nenne"
    r"|lien vers|mentionn\w*|inclu\w*|insér\w*|ajout\w*|cit(?:e|er|ez)|enla\w*|mencion\w*|añad\w*|agreg\w*)\b"
    r"|链接到|提到|提及|加上|加入|附上",
    re.IGNORECASE,
)
"""Words of an order before an address that is to be written down, not opened."""

ABSENCE = re.compile(
    rf"{NEED.pattern}"
    r"|\b(?:can(?:not|[’']t)|could(?:n[’']t)|unable|impossible|not|never|no|none|nothing|without|unavailable"
    r"|unknown|incomplete|failed|failure|gaps?|empty|omitted|unclear|n/a|isn[’']t|wasn[’']t|weren[’']t|didn[’']t"
    r"|doesn[’']t|nicht\w*|kein\w*|ohne|unmöglich|unbekannt|unvollständig|leer|offen|gescheitert|lücken?"
    r"|pas|rien|sans|aucune?|introuvables?|indisponibles?|incomplet\w*|inconnue?s?|vides?|échou\w+"
    r"|no|sin|nada|ningun[oa]?|falló|incomplet[oa]s?|desconocid\w+|non|senza|nessun[oa]?|sconosciut\w"
    r"|não|sem|nenhuma?|niet|geen|zonder|onbekend|не|нет|без|неизвестн\w+)\b"
    r"|没有|未能?|无法|無法|不|无|失败|ない|ません|なし|できず|없|않|못",
    re.IGNORECASE,
)
"""Words with which a report says that something is not there."""

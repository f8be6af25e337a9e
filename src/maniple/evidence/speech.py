"""The verbs that name who says something, in the languages of reports."""

import re

SAYS = re.compile(
    r"\b(?:said|says?|saying|told|tells|admit(?:s|ted)|not(?:es|ed)|conclud\w+|explain\w*|believes?|claims?|complain\w*|"
    r"insist\w*|recall\w*|jok(?:es?|ed)|stated?s?|called|calls|argue[sd]?|warn(?:s|ed)|announce[sd]?|adds|added|wrote|"
    r"writes|remark\w*|"
    r"sagte?n?|sagt|erklärt\w*|nannte|warnt\w*|betont\w*|klagt\w*|meint\w*|räumt\w*|erinnert\w*|scherzt\w*|schrieb|"
    r"dit|disai(?:t|ent)|déclar\w+|estim(?:e|ait)|affirm(?:e|ait|é)|ajout(?:e|ait|é)|rappel(?:le|ait)|ironise\w*|"
    r"expliqu\w+|résum\w+|raconte\w*|plaisant\w+|"
    r"dijo|dice|decía|afirm(?:ó|a)|declaró|explica\w*|admit\w+|advirti\w+|contó|cuenta|resume|"
    r"ha detto|disse|diceva|avisa|conta|lembra|diz|afirmou|"
    r"zei|zegt|сказал\w*|говори[тл]\w*|пояснил\w*|заявил\w*)\b|表示|指出|称|说|述べ|語っ|話[すし]|言[うっ]|말했|밝혔",
    re.IGNORECASE,
)

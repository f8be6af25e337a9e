"""Where a searcher is, as `ddgs` and DuckDuckGo name it: `at-de` for German in Austria."""

from collections.abc import Mapping

EVERYWHERE = "us-en"
"""What `ddgs` itself takes for everybody."""
# Those that DuckDuckGo has (https://duckduckgo.com/duckduckgo-help-pages/settings/params), by language, its
# home first. A client names the locale: others would go into engines' requests as they are.
_REGIONS: Mapping[str, tuple[str, ...]] = {
    "ar": ("xa-ar",),
    "bg": ("bg-bg",),
    "ca": ("ct-ca",),
    "cs": ("cz-cs",),
    "da": ("dk-da",),
    "de": ("de-de", "at-de", "ch-de"),
    "el": ("gr-el",),
    "en": ("us-en", "uk-en", "au-en", "ca-en", "ie-en", "in-en", "nz-en", "ph-en", "sg-en", "za-en"),
    "es": ("es-es", "ar-es", "cl-es", "co-es", "mx-es", "pe-es"),
    "et": ("ee-et",),
    "fi": ("fi-fi",),
    "fr": ("fr-fr", "be-fr", "ca-fr", "ch-fr"),
    "he": ("il-he",),
    "hr": ("hr-hr",),
    "hu": ("hu-hu",),
    "id": ("id-id",),
    "it": ("it-it", "ch-it"),
    "ja": ("jp-jp",),
    "ko": ("kr-kr",),
    "lt": ("lt-lt",),
    "lv": ("lv-lv",),
    "nb": ("no-no",),
    "nl": ("nl-nl", "be-nl"),
    "no": ("no-no",),
    "pl": ("pl-pl",),
    "pt": ("pt-pt", "br-pt"),
    "ro": ("ro-ro",),
    "ru": ("ru-ru",),
    "sk": ("sk-sk",),
    "sv": ("se-sv",),
    "th": ("th-th",),
    "tr": ("tr-tr",),
    "uk": ("ua-uk",),
    "vi": ("vn-vi",),
    "zh": ("cn-zh", "hk-tzh", "tw-tzh"),
}


def region_of(locale: str) -> str:
    """Return the region for a locale such as `de-AT`; `EVERYWHERE` where its language has none."""
    language, *others = locale.lower().replace("_", "-").split("-")
    regions = _REGIONS.get(language, (EVERYWHERE,))
    country = next((one for one in reversed(others) if len(one) == 2), "").replace("gb", "uk")
    return next((one for one in regions if one.startswith(f"{country}-")), regions[0])

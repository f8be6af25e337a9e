"""Pages that only their structure shows to be walls, and honest pages with the same elements."""


def _page(title: str, body: str, head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


_MENU = (
    "<header><a href='/'>Orava</a><nav><a href='/uutiset'>Uutiset</a><a href='/saa'>Sää</a></nav></header>"
)
_NOINDEX = '<meta name="robots" content="noindex">'
_LOGIN = "<form method=post><label>Tunnus <input name=u></label><label>Avain <input type=password></label><button>Seuraava</button></form>"

WALL_STRUCTURES = {
    "password": _page("Orava", f"{_MENU}<main><h1>Hei taas</h1>{_LOGIN}</main>"),
    "password_no_heading": _page("Orava", f"<div class=box>{_LOGIN}</div>"),
    "password_list": _page(
        "Orava", f"{_MENU}<h1>Jäsenet</h1><ul><li>Lehti kotiin</li><li>Arkisto</li></ul>{_LOGIN}"
    ),
    "saml": _page(
        "Kirjasto",
        "<h2>Valitse tapa</h2><a class=b href='https://idp.test/saml2/sso?SAMLRequest=fZ'>Haka</a>",
    ),
    "oauth_form": _page(
        "Orava",
        f"{_MENU}<h1>Terve</h1><form action='https://accounts.google.com/o/oauth2/auth'><button>G</button></form>",
    ),
    "kakao": _page(
        "오라바", "<h1>반가워요</h1><a href='https://kauth.kakao.com/oauth/authorize?x=1'>카카오</a>"
    ),
    "turnstile": _page(
        "Orava",
        "<p>Hetkinen vain.</p><form><div class='cf-turnstile' data-sitekey=k></div><input type=hidden name=t></form>",
    ),
    "hcaptcha": _page(
        "orava.test", "<h1>Ihan pian</h1><div class=h-captcha data-sitekey=k></div><button>Jatka</button>"
    ),
    "reload": _page("Orava", "<h1>Odota</h1>", "<meta http-equiv=refresh content=3>"),
    "reload_query": _page(
        "Orava", "<p>Melkein valmista.</p>", "<meta http-equiv='refresh' content='5; url=?again=1'>"
    ),
    "not_free": _page(
        "Budjetti",
        "<h1>Budjetti kasvaa</h1><p>Valtuusto päätti maanantaina kuuden tunnin keskustelun jälkeen, että menot kasvavat kymmenyksen.</p><p>Lue loput tilaamalla lehti.</p>",
        '<script type="application/ld+json">{"@graph":[{"@type":"NewsArticle","isAccessibleForFree":"False"}]}</script>',
    ),
    "not_free_item": _page(
        "Jää",
        '<div itemscope><meta itemprop="isAccessibleForFree" content="false"><h1>Jää</h1><p>Jää kestää taas.</p></div>',
    ),
    "status_title": _page("503", "<p>Hups.</p>"),
    "status_both": _page("404 | Orava", f"{_MENU}<h1>404 – hukassa</h1><p>Kokeile hakua.</p>"),
    "status_word": _page("Virhe 502 - Orava", "<h1>Virhe 502</h1><p>Palaa myöhemmin.</p>"),
    "noscript": _page("Orava", "<noscript>Sivu vaatii komentosarjat.</noscript><script src=a.js></script>"),
}

HONEST_STRUCTURES = {
    "header_login": _page("Jää", f"<header>{_LOGIN}</header><h1>Jää</h1><p>Jään paksuus on 42 cm.</p>"),
    "modal_login": _page(
        "Jää", f"<h1>Jää</h1><p>Jään paksuus on 42 cm.</p><div class='modal login'>{_LOGIN}</div>"
    ),
    "sidebar_login": _page(
        "Jää", f"<h1>Jää</h1><p>Jään paksuus on 42 cm.</p><div id=sidebar-right>{_LOGIN}</div>"
    ),
    "hidden_login": _page("Jää", f"<h1>Jää</h1><p>Jään paksuus on 42 cm.</p><div hidden>{_LOGIN}</div>"),
    "comment_login": _page(
        "Jää",
        "<h1>Jää</h1><p>Jään paksuus on 42 cm.</p><section class=comments><a href='https://accounts.google.com/o/oauth2/auth'>Kommentoi</a></section>",
    ),
    "generator": _page(
        "Salasana",
        f"<h1>Salasanan pituus</h1><p>Neljä sattumanvaraista sanaa riittää: laskin näyttää, että arvaamiseen kuluu silloin noin 550 vuotta, kun yrityksiä tehdään tuhat sekunnissa.</p>{_LOGIN}",
    ),
    "invisible": _page(
        "Jää", "<h1>Jää</h1><p>Jään paksuus on 42 cm.</p><div class=g-recaptcha data-size=invisible></div>"
    ),
    "newsletter": _page(
        "Jää",
        "<h1>Jää</h1><p>Jään paksuus on 42 cm.</p><form><input type=email><div class=h-captcha></div></form>",
    ),
    "live": _page(
        "Tulos",
        "<h1>Tulos</h1><table><tr><th>Koti</th><th>Vieras</th></tr><tr><td>2</td><td>1</td></tr></table>",
        "<meta http-equiv=refresh content=10>",
    ),
    "ticker": _page(
        "Tulos", "<h1>2–1</h1><p>Maali 61. minuutilla.</p>", "<meta http-equiv=refresh content=60>"
    ),
    "free": _page(
        "Jää",
        "<h1>Jää</h1><p>Jään paksuus on 42 cm.</p>",
        '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":true}</script>',
    ),
    "car": _page("Peugeot 404", "<h1>Peugeot 404</h1><p>Auto valmistui 1960–1975.</p>"),
    "bus": _page("Linja 502 | Orava", "<h1>Linja 502</h1><p>Ajetaan 20 minuutin välein.</p>"),
    "law": _page("§ 410", "<h1>Lagen § 410</h1><p>Den som säljer skall lämna kvitto.</p>"),
    "weight": _page("Kettlebells: 400 g", "<h1>400 g</h1><p>Pienin kuula, punainen.</p>"),
    "unlisted": _page("Yhteys", "<h1>Yhteys</h1><p>Orava Oy, Satamatie 3, Oulu.</p>", _NOINDEX),
    "map": _page(
        "Jääkartta",
        "<h1>Jääkartta</h1><noscript>Kartta vaatii komentosarjat.</noscript><p>Jää kestää.</p><script src=a.js></script>",
    ),
}

"""Sites around one page each: what its address shows, and what an address shows that cannot exist.

`PATH` stands for the requested path, `NONCE` for a value that differs in each answer. The walls are in
languages and wordings that no list of phrases was made for.
"""

from dataclasses import dataclass

from tests.crawler.web import Reply


@dataclass(frozen=True)
class SmallSite:
    page: str
    other: str | None
    """What any other address shows, with status 200; None: status 404."""


class SitePages(dict[str, Reply]):
    """The answers of a `SmallSite`: its page at `/item/7`, robots.txt is missing, all else is the other page."""

    def __init__(self, site: SmallSite) -> None:
        super().__init__()
        self._site = site
        self._answers = 0
        self.robots = ""

    def get(self, path: str, default: Reply | None = None) -> Reply:  # type: ignore[override]
        """Return the answer to `path`."""
        missing = default or Reply("not here", status=404)
        if path == "/robots.txt" and self.robots:
            return Reply(self.robots, "text/plain")
        text = self._site.page if path == "/item/7" else self._site.other
        if text is None or path == "/robots.txt":
            return missing
        self._answers += 1
        return Reply(text.replace("PATH", path).replace("NONCE", f"{self._answers * 7919:08x}"))


def _page(title: str, body: str, head: str = "", lang: str = "en") -> str:
    return f'<!doctype html><html lang="{lang}"><head><title>{title}</title>{head}</head><body>{body}</body></html>'


def _framed(title: str, body: str, head: str = "", lang: str = "en") -> str:
    nav = "<header><a href='/'>Lumo</a><nav><a href='/a'>Alpha</a><a href='/b'>Beta</a><a href='/c'>Gamma</a></nav></header>"
    foot = "<footer><p>© 2026 Lumo Oy. <a href='/x'>Legal</a> <a href='/y'>Imprint</a></p></footer>"
    return _page(title, f"{nav}<main>{body}</main>{foot}", head, lang)


def _any(page: str) -> SmallSite:
    return SmallSite(page, page)


_NOINDEX = '<meta name="robots" content="noindex,nofollow">'
_FREE = '<script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle","isAccessibleForFree":false,"headline":"x"}</script>'

# fmt: off
WALL_SITES: dict[str, SmallSite] = dict(
fi_login=_any(_framed("Asiakaspalvelu","<h1>Tervetuloa takaisin</h1><p>Jatka omilla tunnuksillasi, niin näet tilauksesi.</p><form><input name=user><input type=password name=pw><button>Jatka</button></form>",lang="fi")),
hu_gone=_any(_framed("Lumo","<h1>Hoppá!</h1><p>Ez az oldal elköltözött vagy sosem létezett. Nézz körül inkább a kezdőlapon!</p><p>PATH</p>",lang="hu")),
el_maintenance=_any(_page("Lumo","<h1>Επιστρέφουμε σύντομα</h1><p>Κάνουμε αναβάθμιση στα συστήματά μας. Ευχαριστούμε για την υπομονή σας.</p>",lang="el")),
tr_region=_any(_framed("Lumo","<h1>Üzgünüz</h1><p>Bu yayın hakları nedeniyle bulunduğunuz yerde gösterilmiyor.</p>",lang="tr")),
vi_robot=_any(_page("Lumo","<p>Vui lòng chờ trong giây lát, hệ thống đang xác thực kết nối của bạn.</p><p>Mã: NONCE</p><script src='https://challenges.cloudflare.com/turnstile/v0/api.js'></script><div class='cf-turnstile' data-sitekey='0x4'></div>",lang="vi")),
th_consent=_any(_page("Lumo","<div class=box><h2>ความเป็นส่วนตัวของคุณ</h2><p>เราและพันธมิตร 812 รายใช้คุกกี้เพื่อวัดผลและแสดงโฆษณา คุณเลือกได้ว่าจะยอมรับหรือไม่</p><button>ยอมรับทั้งหมด</button><button>ตั้งค่า</button></div>",lang="th")),
id_app=_any(_framed("Lumo","<h1>Lanjutkan di aplikasi</h1><p>Konten ini hanya bisa dilihat di aplikasi Lumo. Pindai kode untuk memasangnya.</p>",lang="id")),
ar_gone=_any(_framed("لومو","<h1>عذرًا</h1><p>لا يوجد شيء هنا. ربما حُذف الرابط أو كُتب بشكل غير صحيح.</p>",lang="ar")),
he_login=_any(_framed("לומו","<h1>שלום</h1><form><input type=email><input type=password><button>המשך</button></form><a href='https://accounts.google.com/o/oauth2/v2/auth?client_id=1'>Google</a>",lang="he")),
cs_age=_any(_page("Lumo","<h1>Než vás pustíme dál</h1><p>Prodáváme víno. Je vám osmnáct?</p><button>Ano</button><button>Ne</button>",lang="cs")),
ro_teaser=SmallSite(_framed("Bugetul orașului","<h1>Bugetul orașului crește cu o zecime</h1><p>Consiliul a votat luni seară, după o dezbatere de șase ore, un buget mai mare.</p><div class=offer><p>Restul este pentru cei care ne susțin. 5 lei pe lună.</p><button>Vreau</button></div>",_FREE,"ro"),None),
uk_loading=_any(_page("Lumo","<noscript><p>Щоб побачити цю сторінку, потрібен сучасний переглядач.</p></noscript><div id=root></div><script src=/m.js></script>",lang="uk")),
ko_error=_any(_page("500","<h1>500</h1><p>잠깐 문제가 생겼어요. 곧 고칠게요.</p>",_NOINDEX,"ko")),
hi_gone=_any(_framed("लूमो","<h1>कुछ नहीं मिला</h1><p>जिस पते पर आप आए हैं वहाँ अब कोई सामग्री नहीं है।</p><p>PATH</p>",lang="hi")),
en_gone=_any(_framed("Lumo","<h1>This trail ends here</h1><p>Our little fox looked everywhere and came back with an empty basket. Try the map instead.</p>")),
en_members=_any(_framed("Lumo","<h1>Members only from here</h1><p>Come in with the account of your library.</p><a class=btn href='https://login.microsoftonline.com/common/oauth2/v2.0/authorize?x=1'>Microsoft</a><a class=btn href='https://appleid.apple.com/auth/authorize?x=2'>Apple</a>")),
en_wait=_any(_page("Hold on","<p>One second while we look at your connection.</p><p>NONCE</p>","<meta http-equiv=refresh content='8'>")),
sk_status=SmallSite(_framed("404","<h1>404</h1><p>Tu nič nie je.</p>",lang="sk"),None),
bg_consent=_any(_page("Лумо","<section><h1>Преди да продължите</h1><p>Ние и 640 доставчици съхраняваме данни на устройството ви. Изберете какво позволявате.</p><button>Добре</button><button>Настройки</button></section>",lang="bg")),
fa_block=_any(_page("لومو","<h1>دسترسی ممکن نیست</h1><p>نشانی شما در فهرست سیاه ماست. شناسه: NONCE</p>",lang="fa")),
hr_closed=_any(_framed("Lumo","<h1>Zatvoreno zbog preseljenja</h1><p>Naš portal se seli na novi poslužitelj i vraća se u ponedjeljak.</p>",lang="hr")),
zh_app=_any(_framed("露默","<h1>请在客户端打开</h1><p>该内容仅支持在露默客户端内浏览，扫码即可下载。</p>",lang="zh")),
ja_member=_any(_framed("ルモ","<h1>会員専用ページ</h1><p>ここから先は会員の方だけがお読みいただけます。</p><form><input name=id><input type=password><button>次へ</button></form>",lang="ja")),
en_home=_any(_framed("Lumo – lamps","<h1>Lamps for long winters</h1><p>We make lamps in Oulu. See what is new this week, or drop by at the harbour shop.</p>")),
sw_gone=_any(_framed("Lumo","<h1>Samahani</h1><p>Ukurasa huu haupo tena. Rudi mwanzo uendelee kusoma.</p>",lang="sw")),
)

_LOST = _framed("Lumo","<h1>Nothing lives at this address</h1><p>PATH is not one of ours. Use the menu above.</p>")
_HOME = WALL_SITES["en_home"].page
_ENTER = WALL_SITES["he_login"].page

HONEST_SITES: dict[str, SmallSite] = dict(
definition=SmallSite(_framed("Catenary","<h1>Catenary</h1><p>The curve of a chain that hangs from two points. Its height is a·cosh(x/a).</p>"),_LOST),
press=SmallSite(_framed("Press note","<h1>New chair</h1><p>Lumo has a new chair. Aino Salo takes office on Monday. She succeeds Matti Korpi.</p>"),None),
table=SmallSite(_framed("Prices","<h1>Prices</h1><table><tr><th>Lamp</th><th>Euro</th></tr><tr><td>Kaamos</td><td>89</td></tr><tr><td>Revontuli</td><td>120</td></tr></table>"),_LOST),
empty=SmallSite(_framed("Outdoor lamps","<h1>Outdoor lamps</h1><p>There is none in this category until spring. In April we show four.</p>"),_HOME),
contact=SmallSite(_framed("Contact","<h1>Contact</h1><p>Lumo Oy, Satamatie 3, 90100 Oulu. Phone +358 8 555 010.</p>"),_HOME),
fi_hours=SmallSite(_framed("Aukiolo","<h1>Aukioloajat</h1><p>Arkisin 10–18, lauantaisin 10–15. Juhannuksena suljettu.</p>",lang="fi"),_LOST),
hu_recipe=SmallSite(_framed("Lángos","<h1>Lángos</h1><p>Fél kiló liszt, 3 dl tej, 2 dkg élesztő, só. Egy órát kel, forró olajban sül.</p>",lang="hu"),None),
el_ferry=SmallSite(_framed("Πλοίο","<h1>Δρομολόγια</h1><p>Το πλοίο φεύγει κάθε μέρα στις 7:40 από τον Πειραιά και φτάνει στις 12:15.</p>",lang="el"),_ENTER),
tr_word=SmallSite(_framed("İmece","<h1>İmece</h1><p>Köyde işlerin ortaklaşa ve sırayla yapılmasıdır.</p>",lang="tr"),_LOST),
ar_note=SmallSite(_framed("إعلان","<h1>موعد المحاضرة</h1><p>تُلقى المحاضرة يوم الأربعاء في القاعة الثانية عند السادسة.</p>",lang="ar"),None),
he_price=SmallSite(_framed("מחירים","<h1>מחירון</h1><p>כניסה למבוגר 40 ש״ח, לילד 20 ש״ח. בשבת סגור.</p>",lang="he"),_LOST),
zh_fact=SmallSite(_framed("鲁班锁","<h1>鲁班锁</h1><p>鲁班锁由六根木条组成，不用钉子，靠凹凸咬合。</p>",lang="zh"),_HOME),
ja_fact=SmallSite(_framed("灯台","<h1>岬の灯台</h1><p>1903年に完成した。高さは27メートルで、光は18海里まで届く。</p>",lang="ja"),_LOST),
forum_box=SmallSite(_page("Cranes","<div id=top><form><input name=u><input type=password name=p><button>Go</button></form></div><h1>Cranes at the lake</h1><p>On Sunday we counted 214 cranes at the north shore, twelve more than last year.</p>"),_LOST),
captcha_form=SmallSite(_framed("Write to us","<h1>Write to us</h1><p>We read every letter and answer within a week. The archive is open on Tuesdays from ten to four.</p><form><input name=mail><textarea name=text></textarea><div class=g-recaptcha></div><button>Send</button></form><script src='https://www.google.com/recaptcha/api.js'></script>"),None),
noindex=SmallSite(_framed("Impressum","<h1>Impressum</h1><p>Lumo GmbH, Hafenweg 3, Kiel. Geschäftsführerin: Anna Holm. HRB 4711, Amtsgericht Kiel.</p>",_NOINDEX,"de"),None),
car=SmallSite(_framed("Peugeot 404","<h1>Peugeot 404</h1><p>A saloon by Pininfarina, built from 1960 to 1975. Its engine had 1,618 cubic centimetres.</p>"),_LOST),
number=SmallSite(_framed("Bus 500","<h1>Bus 500</h1><p>Runs every 20 minutes from the station to the harbour, on Sundays every hour.</p>"),_HOME),
changelog=SmallSite(_framed("2.1","<h1>2.1</h1><ul><li>Dimming without steps</li><li>Radio range doubled</li></ul>"),_LOST),
quote=SmallSite(_framed("Proverb","<h1>Proverb of the week</h1><blockquote>Ei oppi ojaan kaada.</blockquote><p>Finnish: learning never tips one into a ditch.</p>"),_LOST),
soft_twin=SmallSite(_framed("Kaamos lamp","<h1>Kaamos</h1><p>Use the menu above to dim. PATH is printed on the foot.</p>"),_LOST),
status=SmallSite(_framed("Service status","<h1>Service status</h1><p>All systems run. The last fault was on 3 March and took nine minutes.</p>","<meta http-equiv=refresh content='60'>"),None),
obit=SmallSite(_framed("Eero Laine","<h1>Eero Laine 1940–2026</h1><p>The glassblower Eero Laine died in Nuutajärvi on Saturday.</p>"),_HOME),
noscript=SmallSite(_framed("Ice report","<h1>Ice report</h1><noscript><p>The map needs scripts.</p></noscript><p>Bay ice is 42 cm thick. Driving is allowed up to 3.5 tonnes.</p><script>map()</script>"),None),
free=SmallSite(_framed("Minutes","<h1>Minutes</h1><p>Five members were present. The budget passed with four votes.</p>",'<script type="application/ld+json">{"@type":"WebPage","isAccessibleForFree":true}</script>'),_LOST),
)
# fmt: on

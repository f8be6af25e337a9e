"""Pages that stand in the place of others, after real ones, and honest pages that speak of such things."""

from collections.abc import Mapping

_LINKS = (
    "<ul>" + "".join(f"<li><a href='/{n}'>Popular story number {n}</a></li>" for n in range(12)) + "</ul>"
)
_NAV = "<nav><a href='/'>Home</a><a href='/news'>News</a><a href='/about'>About us</a></nav>"
_FOOT = "<footer>© 2025 Example Ltd. All rights reserved.</footer>"


def _page(title: str, body: str, head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{_NAV}{body}{_FOOT}</body></html>"


def _bare(title: str, body: str, head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


_LOGIN = "<form action='/login'><input name=user placeholder=E-Mail><input type='password' name=p><button>{}</button></form>"

OBSTACLES: Mapping[str, tuple[str, str]] = {
    "plain soft 404": ("not found", _page("Nothing here - Shop", "<h1>404: the page was not found</h1><p>The page that you asked for is gone or never was. Use the search.</p>")),
    "soft 404 with popular stories": ("not found", _page("Page not found | The Daily", f"<h1>Page not found</h1><p>We can’t find the page you’re looking for. It may have moved.</p><h2>Popular</h2>{_LINKS}")),
    "WordPress soft 404": ("not found", _page("Page not found – My blog", "<main><h1>Oops! That page can’t be found.</h1><p>It looks like nothing was found at this location. Maybe try a search?</p><form><input type=search></form></main>")),
    "Apache message": ("not found", _bare("404 Not Found", "<h1>Not Found</h1><p>The requested URL /a.html was not found on this server.</p><hr><address>Apache/2.4.41 (Ubuntu) Server at a.test Port 80</address>")),
    "shop item": ("not found", _page("Sorry! - Shop", "<h1>Sorry</h1><p>The product you are looking for is no longer available. Check the spelling or try a search.</p>")),
    "German soft 404": ("not found", _page("Seite nicht gefunden - Stadt Beispiel", "<h1>Seite nicht gefunden</h1><p>Die von Ihnen aufgerufene Seite konnte leider nicht gefunden werden. Zur Startseite.</p>")),
    "French soft 404": ("not found", _page("Page introuvable | Mairie", "<h1>Page introuvable</h1><p>La page que vous recherchez n'existe plus ou a été déplacée. Retournez à la page d'accueil.</p>")),
    "Spanish soft 404": ("not found", _page("Página no encontrada", "<h1>Error 404</h1><p>La página que buscas no existe o ha sido eliminada.</p>")),
    "Chinese soft 404": ("not found", _page("页面不存在", "<h1>抱歉，页面不存在</h1><p>您访问的页面不存在或已被删除。返回首页</p>")),
    "Japanese soft 404": ("not found", _page("ページが見つかりません｜例", "<h1>ページが見つかりません</h1><p>お探しのページは削除されたか、移動した可能性があります。</p>")),
    "Cloudflare": ("bot check", _bare("Just a moment...", "<noscript><div>Enable JavaScript and cookies to continue</div></noscript><script>window._cf_chl_opt={cvId:'3'};</script>")),
    "Cloudflare, older": ("bot check", _bare("Attention Required! | Cloudflare", "<h1>One more step</h1><p>Please complete the security check to access a.test</p><p>Cloudflare Ray ID: 7a</p><form id='challenge-form'></form>")),
    "Cloudflare, with text": ("bot check", _bare("Just a moment…", "<h1>www.a.test</h1><p>Checking if the site connection is secure</p><p>www.a.test needs to review the security of your connection before proceeding.</p>")),
    "DataDome": ("bot check", _bare("a.test", "<p>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c'}</script><script src='https://ct.captcha-delivery.com/c.js'></script>")),
    "PerimeterX": ("bot check", _bare("Access to this page has been denied", "<h1>Press &amp; Hold to confirm you are a human (and not a bot).</h1><p>Reference ID 12</p><div id='px-captcha'></div>")),
    "AWS WAF": ("bot check", _bare("Human Verification", "<div id='aws-waf-captcha'>Let's confirm you are human. Complete the security check before continuing.</div>")),
    "Imperva": ("bot check", _bare("Pardon Our Interruption", "<h1>Pardon Our Interruption</h1><p>As you were browsing something about your browser made us think you were a bot.</p><p>To regain access, please make sure that cookies and JavaScript are enabled.</p>")),
    "Russian bot check": ("bot check", _bare("Проверка браузера", "<p>Подтвердите, что вы не робот. Включите JavaScript и cookies.</p>")),
    "Anubis": ("bot check", _bare("Making sure you're not a bot!", "<h1>Making sure you're not a bot!</h1><p>Loading...</p><script id='anubis_challenge' type='application/json'>{}</script>")),
    "hCaptcha": ("bot check", _bare("Verification", "<p>Please verify you are human to continue.</p><div class='h-captcha' data-sitekey='x'></div>")),
    "Google sorry": ("bot check", _bare("https://www.google.com/search?q=a", "<p>Our systems have detected unusual traffic from your computer network. This page checks to see if it's really you sending the requests, and not a robot.</p><form><div class='g-recaptcha'></div></form>")),
    "German bot check": ("bot check", _bare("Nur einen Moment…", "<p>Wir überprüfen, ob Sie ein Mensch sind. Dies kann einige Sekunden dauern.</p>")),
    "French bot check": ("bot check", _bare("Un instant…", "<p>Vérification que vous êtes humain. Cette opération peut prendre quelques secondes.</p>")),
    "Spanish bot check": ("bot check", _bare("Un momento…", "<p>Verificando que eres humano. Esto puede tardar unos segundos.</p>")),
    "Chinese bot check": ("bot check", _bare("请稍候…", "<p>正在验证您是否是真人。这可能需要几秒钟时间。</p>")),
    "Japanese bot check": ("bot check", _bare("しばらくお待ちください...", "<p>人間であることを確認しています。これには数秒かかる場合があります。</p>")),
    "login form": ("login wall", _page("Log in to Example", "<h1>Log in</h1>" + _LOGIN.format("Log in") + "<p>Forgot your password? <a href='/join'>Create an account</a></p>")),
    "login for a group": ("login wall", _page("Example groups", "<p>You must log in to see this group.</p>" + _LOGIN.format("Log in"))),
    "German login": ("login wall", _page("Anmelden", "<h1>Anmelden</h1><p>Bitte melden Sie sich an, um fortzufahren.</p>" + _LOGIN.format("Anmelden"))),
    "Chinese login": ("login wall", _page("登录", "<h1>用户登录</h1><p>请先登录后查看</p>" + _LOGIN.format("登录"))),
    "Japanese login": ("login wall", _page("ログイン", "<h1>ログイン</h1><p>このページの閲覧にはログインが必要です。</p>" + _LOGIN.format("ログイン"))),
    "consent of a search engine": ("cookie wall", _bare("Before you continue to Search", "<h1>Before you continue to Search</h1><p>We use cookies and data to deliver and maintain our services.</p><p>If you choose to “Accept all”, we will also use cookies to personalize content.</p><button>Reject all</button><button>Accept all</button><a>More options</a>")),
    "German cookie wall": ("cookie wall", _bare("Beispielzeitung mit Werbung lesen", "<h1>Mit Werbung weiterlesen</h1><p>Um die Seite kostenlos zu lesen, stimmen Sie der Verwendung von Cookies zu.</p><button>Alle akzeptieren</button>")),
    "paywall": ("paywall", _page("The quiet river - The Daily", "<article><h1>The quiet river</h1><p>The river was low that summer, and nobody in the town knew why.</p><p>Subscribe to continue reading. Already a subscriber? <a>Log in</a></p></article>", '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}</script>')),
    "French paywall": ("paywall", _page("Le fleuve - Le Jour", "<article><h1>Le fleuve</h1><p>Le fleuve était bas cet été.</p><p>Il vous reste 85 % de cet article à lire. La suite est réservée aux abonnés. Déjà abonné ?</p></article>")),
    "Japanese paywall": ("paywall", _page("川の話 - 日報", "<article><h1>川の話</h1><p>その夏、川の水は少なかった。</p><p>この記事は有料会員限定です。続きを読むには会員登録が必要です。</p></article>", '<script type="application/ld+json">{"isAccessibleForFree":"False"}</script>')),
    "region block": ("region block", _bare("451: Unavailable due to legal reasons", "<p>We recognize you are attempting to access this website from a country belonging to the European Economic Area (EEA) and cannot grant you access at this time.</p>")),
    "video not here": ("region block", _page("Video", "<p>This video is not available in your country.</p>")),
    "age gate": ("age gate", _bare("Age verification", "<h1>Are you over 18?</h1><p>You must be at least 18 years old to enter this site.</p><button>Yes, I am over 18</button><button>Exit</button>")),
    "Akamai": ("error page", _bare("Access Denied", "<h1>Access Denied</h1><p>You don't have permission to access \"http&#58;&#47;&#47;a.test\" on this server.</p><p>Reference&#32;&#35;18.7f</p><p>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net/18.7f</p>")),
    "internal error": ("error page", _bare("500 Internal Server Error", "<h1>Internal Server Error</h1><p>The server encountered an internal error and was unable to complete your request.</p>")),
    "maintenance": ("error page", _bare("Site under maintenance", "<h1>We'll be back soon!</h1><p>Sorry for the inconvenience. We're performing some maintenance at the moment.</p>")),
    "Chinese error": ("error page", _bare("访问被拦截", "<h1>访问被拦截</h1><p>您的请求已被拦截，请稍后再试。</p>")),
    "needs scripts": ("empty shell", _bare("App", "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div><script src=/a.js></script>")),
}  # fmt: skip
"""The kind and the HTML by the name."""

_REAL = "The mill was built in 1862 and ground corn for three villages until the river was moved. "

HONEST: Mapping[str, str] = {
    "Russian page about robots": _page("Робот на складе", "<h1>Робот на складе</h1><p>С мая на складе работает робот, а не человек. Проверка заняла три недели, его цена 2 млн рублей.</p>"),
    "article about 404 pages": _page("How to design a 404 page", "<article><h1>How to design a 404 page</h1><p>" + "A good page tells visitors that the page they wanted was not found, and offers a search. " * 12 + "</p></article>"),
    "glossary entry, short": _page("404 Not Found - HTTP", "<main><h1>404 Not Found</h1><p>The HTTP 404 Not Found status code means that the server has no resource at this address. Use 410 if the resource is gone for good.</p></main>"),
    "reference of a status": _page("403 Forbidden - HTTP", "<main><h1>403 Forbidden</h1><p>The HTTP 403 Forbidden client error response status code indicates that the server understood the request but refused to process it.</p><p>Requests that fail with 403 are not the same as 401, in which authentication may help.</p></main>"),
    "question in a forum": _page("Stuck at checking your browser", "<main><h1>Stuck at checking your browser</h1><p>My scraper gets a page with the title \"Just a moment...\" and \"Checking your browser before accessing\". How do I get past it? I use httpx with default headers.</p><p>Use a browser, or ask the owner for an API key.</p></main>"),
    "a song": _page("Just a Moment (song)", "<h1>Just a Moment</h1><p>Just a Moment is a song by the rapper Nas, released in 2004 on the album Street's Disciple. It was produced by Chucky Thompson.</p>"),
    "cookie policy": _page("Cookie policy", "<h1>Cookie policy</h1><p>We use cookies to remember your basket. The session cookie ends when you close the browser.</p><p>Our statistics cookie is stored for 30 days and holds no personal data.</p><p>You can delete cookies in the settings of your browser.</p>"),
    "news about cookie walls": _page("Court bans cookie walls", "<article><h1>Court bans cookie walls</h1><p>Sites may no longer force visitors to accept cookies to continue, a court said on Monday. " + "The judges found that consent must be free. " * 10 + "</p></article>"),
    "short page with a cookie banner": _page("Opening hours", "<div class='cookie-banner'><p>We use cookies. By using this site you agree to our cookies.</p><button>Accept all</button></div><h1>Opening hours</h1><p>The library is open from nine to five on weekdays, and from ten to two on Saturdays.</p>"),
    "short page with a login form": _page("Opening hours", "<form><input name=u><input type='password'><label>Remember me</label><a>Forgot your password?</a></form><h1>Opening hours</h1><p>The library is open from nine to five on weekdays, and from ten to two on Saturdays.</p>"),
    "help on logging in": _page("Sign in", "<h1>Sign in</h1><p>Open the app, choose Sign in, and enter the address with which you registered. The app sends a code to it.</p>"),
    "help on passwords": _page("Reset your password", "<h1>Reset your password</h1><p>Choose Forgot your password in the app. A link is sent to you by mail, which works for one hour.</p>"),
    "statistics of paywalls": _page("Paywalls in 2024", "<article><h1>Paywalls in 2024</h1><p>" + "A study of 200 papers says that 71 percent ask readers to subscribe to continue reading. " * 6 + "</p></article>"),
    "newsletter box": _page("The mill", "<article><h1>The mill</h1><p>" + _REAL * 3 + "</p><p>Subscribe to our newsletter for more stories.</p></article>"),
    "end of a free article": _page("The mill", "<article><h1>The mill</h1><p>" + _REAL * 18 + "</p><p>Subscribe to read all our stories. Already a subscriber?</p></article>", '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}</script>'),
    "geoblocking explained": _page("Geo-blocking", "<h1>Geo-blocking</h1><p>Geo-blocking is a practice in which a service is not available in some countries, for example because of licences. Users see a message such as \"not available in your country\".</p>"),
    "age limits of games": _page("Age ratings", "<h1>Age ratings</h1><p>USK 16 means that a game is sold to people of at least 16 years. The rating is printed on the box. Shops must check the age of buyers.</p>"),
    "planned maintenance": _page("Planned maintenance on 3 May", "<h1>Planned maintenance on 3 May</h1><p>On Sunday from 3 to 5 am the archive will not be reachable. The catalogue stays available.</p>"),
    "status page": _page("Example status", "<h1>Example status</h1><p>14:10 UTC: We are experiencing issues with uploads. 14:32 UTC: a faulty disk was replaced. 15:00 UTC: resolved.</p>"),
    "error in a manual": _page("Error 0x80070005", "<h1>Error 0x80070005</h1><p>Access denied (0x80070005) means that the program has no right to write to the folder. Start it as administrator.</p>"),
    "post mortem": _page("What happened on 2 June", "<article><h1>What happened on 2 June</h1><p>" + "Users saw an internal server error because the disk of the database was full. " * 10 + "</p></article>"),
    "captcha library": _page("hcaptcha-react", "<main><h1>hcaptcha-react</h1><p>A component that shows hCaptcha in a form. Install it with npm and pass your site key.</p><div class='h-captcha'></div></main>"),
    "contact form with captcha": _page("Contact", "<h1>Contact</h1><p>Write to us at Mill Lane 3, 1000 Bridge. The office is open on weekdays from nine to five.</p><form><textarea></textarea><div class='g-recaptcha'></div><button>Send</button></form>"),
    "Turing test": _page("CAPTCHA", "<h1>CAPTCHA</h1><p>A CAPTCHA is a test that tells humans and computers apart. The term was coined in 2003 by Luis von Ahn. Users verify that they are human by reading distorted letters.</p>"),
    "very short note": _page("Ferry", "<h1>Ferry</h1><p>The ferry leaves at 8 and at 17 o'clock.</p>"),
    "list of links": _page("Archive", f"<h1>Archive</h1>{_LINKS}"),
    "JavaScript course": _page("JavaScript", "<h1>JavaScript</h1><p>JavaScript is a language for pages. Enable it in the settings.</p><script>a()</script>"),
    "a film": _page("Access Denied (film)", "<h1>Access Denied</h1><p>Access Denied is a film of 1998 about a burglar who finds that the vault he opens holds his own diary.</p>"),
    "a novel": _page("Lost: a novel", "<h1>Lost</h1><p>Lost is a novel by Gregory Maguire, published in 2001. A writer travels to London to look for her cousin.</p>"),
    "page removed by a wiki": _page("Deletion log", "<h1>Deletion log</h1><p>12 May: the page Mill (river) was deleted because it had no sources. 13 May: the page Weir was moved to Weirs.</p>"),
    "German article": _page("Die Fehlerseite 404", "<article><h1>Die Fehlerseite 404</h1><p>Der Statuscode 404 bedeutet, dass der Server die Seite nicht gefunden hat. Betreiber können eine eigene Seite gestalten.</p></article>"),
    "German notice": _page("Öffnungszeiten", "<h1>Öffnungszeiten</h1><p>Bitte melden Sie sich vor einem Besuch telefonisch an. Das Archiv ist montags geschlossen.</p>"),
    "French article": _page("Erreur 404 : définition", "<article><h1>Erreur 404 : définition</h1><p>Le code 404 signifie que le serveur ne trouve pas la ressource. Les développeurs peuvent personnaliser cette page.</p></article>"),
    "French law": _page("Les murs de cookies", "<h1>Les murs de cookies</h1><p>Selon la CNIL, un site ne peut pas toujours exiger d'accepter les cookies pour accéder à son contenu. L'internaute doit avoir un choix.</p>"),
    "Spanish article": _page("Qué es el error 404", "<article><h1>Qué es el error 404</h1><p>El error 404 significa que el servidor no encuentra la página. Los usuarios deben revisar la dirección, por ejemplo.</p></article>"),
    "Chinese article": _page("404页面是什么", "<article><h1>404页面是什么</h1><p>404是指服务器找不到用户请求的页面时返回的状态码。站长可以自定义该页面。</p></article>"),
    "Chinese login help": _page("如何登录", "<h1>如何登录</h1><p>打开应用，点击右上角的头像，输入手机号和短信中的数字即可。</p>"),
    "Japanese article": _page("404エラーとは", "<article><h1>404エラーとは</h1><p>404とは、サーバーがページを見つけられないことを意味するステータスコードです。開発者は独自のページを作れます。</p></article>"),
    "Japanese notice": _page("開館時間", "<h1>開館時間</h1><p>図書館は平日九時から五時まで開いています。月曜日は休みです。</p>"),
    "licence page": _page("Licence", "<h1>Licence</h1><p>Permission is granted to use the software. You must accept the terms before you sell copies of it.</p>"),
    "lottery rules": _page("Rules", "<h1>Rules</h1><p>You must be at least 18 years old to take part. Draws are held on Fridays. The winner is told by mail.</p>"),
    "article with error in the comments": _page("The mill", "<article><h1>The mill</h1><p>" + _REAL * 6 + "</p></article><section class='comments'><p>The link you gave does not work: page not found.</p></section>"),
    "exhibition named 404": _page("404 – exhibition", "<h1>404</h1><p>The exhibition shows works of 12 painters about roads that end. It is open from 3 May to 9 June in the old mill, daily from ten to six.</p>"),
}  # fmt: skip
"""The HTML by the name."""

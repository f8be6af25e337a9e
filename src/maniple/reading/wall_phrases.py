"""What pages say and contain that stand in the place of a page: walls, soft 404s and error pages.

Titles are matched as a whole, sentences in part; both are normalized by `normalize_phrase`. Marks are matched in the
HTML. A sentence addresses the reader ("the page that you asked for …"), so that a text about such pages does not match.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ObstacleKind = Literal[
    "bot check",
    "login wall",
    "cookie wall",
    "paywall",
    "region block",
    "age gate",
    "not found",
    "error page",
    "empty shell",
    "catch-all page",
]
"""What a page shows instead of its content."""

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "…": "...", "\xa0": " "})


def normalize_phrase(text: str) -> str:
    """Return `text` in lower case, with plain apostrophes and single blanks."""
    return " ".join(text.translate(_APOSTROPHES).casefold().split())


@dataclass(frozen=True, slots=True)
class ObstaclePhrases:
    """The patterns of one kind."""

    title: re.Pattern[str]
    sentences: re.Pattern[str]
    """Each is a sign by itself."""
    more: re.Pattern[str] | None = None
    """Signs only beside others."""
    mark: re.Pattern[str] | None = None
    """Markup that no other page has, apart from scripts that such services add to every page."""
    most_rest: int = 3_000
    """Characters of other text from which the page is none of this kind."""


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{part})" for part in parts))


_THING = (
    r"(?:page|file|document|article|content|resource|url|address|link|site|website|post|story|item|product|listing|"
    r"job|object|video|recipe|entry|location)"
)
_YOU_WANT = (
    r"(?:that |which )?you(?:'re| are| were|'ve| have)? (?:just )?(?:tr(?:ying|ied) to (?:reach|access|view|find|open|get)|"
    r"look(?:ing|ed) for|request(?:ed|ing)|ask(?:ed)? for|want(?:ed)?|search(?:ed|ing) for|follow(?:ed|ing)|visit(?:ed|ing)|"
    r"click(?:ed)?|enter(?:ed)?|typed|seek)"
)
_IS_LOST = r"(?:is|was|has|does|do|could|can|can't|cannot|couldn't|isn't|doesn't|wasn't|hasn't|may|might|seems?|no longer|appears?)"

NOT_FOUND = ObstaclePhrases(
    title=_any(
        r"(?:http |error |code |status |page )*(?:404|410)(?: error| page| gone)*",
        rf"(?:(?:404|410) )?(?:error )?(?:this |that |the |your |requested )*{_THING}s? (?:was |is |has been |has |could |can )*"
        r"(?:not|no longer|n't)? ?(?:be )?(?:found|exists?|available|unavailable|gone|missing|removed|deleted|moved)(?: (?:404|410))?",
        rf"(?:this |that |the |requested )*{_THING} (?:can't|cannot|couldn't|could not|can not) be (?:found|located)",
        rf"(?:this |that |the )*{_THING} (?:doesn't|does not|isn't|is not) (?:exist|available|here|there)(?: any ?more)?",
        rf"(?:we )?(?:can't|cannot|couldn't|could not) (?:find|locate) (?:that|this|the|your) {_THING}.{{0,40}}",
        r"(?:404 |410 )?(?:error )?not found(?: (?:404|error))*",
        r"nothing (?:was )?(?:here|found|to see here)(?: 404)?",
        r"(?:404 )?(?:you're |you are |looks like you're |you seem to be )?lost(?: in space)?(?: 404)?",
        r"(?:404 )?(?:fehler 404 )?(?:die |diese )?(?:angeforderte )?(?:seite|datei|artikel)(?: wurde| ist| konnte)?(?: leider)? "
        r"(?:nicht (?:gefunden(?: werden)?|verfügbar|vorhanden)|existiert nicht(?: mehr)?)(?: 404)?",
        r"fehler 404|erreur 404|error 404|errore 404|erro 404|fout 404|ошибка 404|404エラー|404 錯誤|404错误",
        r"(?:404 )?(?:erreur )?(?:cette |la )?page (?:demandée )?(?:est )?(?:introuvable|non trouvée|inexistante|n'existe (?:pas|plus))(?: 404)?",
        r"(?:404 )?(?:la )?página (?:no (?:encontrada|existe|disponible)|no se ha encontrado|não encontrada)(?: 404)?",
        r"(?:404 )?pagina (?:non trovata|niet gevonden)(?: 404)?",
        r"(?:404 )?страница не (?:найдена|существует)(?: 404)?",
        r"(?:404 )?(?:không tìm thấy(?: trang)?|halaman tidak ditemukan|pagina nu (?:a fost găsită|există)|η σελίδα δεν βρέθηκε|(?:oups,? )?cette page (?:a disparu|n'existe (?:pas|plus))|nie znaleziono strony|strona nie (?:istnieje|została znaleziona)|sidan (?:kunde inte hittas|hittades inte|finns inte)|siden (?:blev ikke fundet|ble ikke funnet|finnes ikke)|sivua ei löyt\w+|stránka (?:nebyla )?nenalezena|stránka neexistuje|az oldal nem található|sayfa bulunamadı|сторінку не знайдено|페이지를 찾을 수 없습니다)(?: 404)?",
        rf"(?:sorry,? )?(?:this|that) {_THING} (?:isn't|is not) available (?:right now|at the moment|currently|at this time)",
        r"(?:404 ?)?(?:抱歉|对不起|很抱歉)?(?:您(?:要)?访问的)?(?:该|此)?(?:页面|网页|頁面|文章|内容)(?:已)?(?:不存在|未找到|找不到了?|没有找到|已删除|已被删除|走丢了)(?: ?404)?",
        r"(?:404 ?)?(?:找不到(?:该|此|您要的)?(?:页面|网页|頁面|文件))(?: ?404)?",
        r"(?:404 ?)?(?:お探しの|ご指定の|指定された)?(?:ページ|記事|ファイル)(?:は|が)?(?:見つかりません(?:でした)?|存在しません|ありません|削除されました)(?: ?404)?",
    ),
    sentences=_any(
        rf"\b{_THING}s? {_YOU_WANT}\b.{{0,80}}?\b{_IS_LOST}\b",
        rf"\b(?:we|it looks like we|looks like we) ?(?:'re|are)? ?(?:sorry,? )?(?:but )?(?:we )?(?:can't|cannot|couldn't|could not|can not|were unable to|are unable to|are not able to) (?:seem to )?(?:find|locate) (?:the|that|this|your|a|any) (?:\w+ )?{_THING}",
        r"\b(?:could not|couldn't|can't|cannot) find (?:that|this|the page|what you)",
        rf"\b(?:this|that|the) (?:requested )?{_THING} (?:has been|was|may have been|might have been|is) (?:re)?(?:moved|deleted|removed)\b.{{0,60}}",
        rf"\bsorry,? (?:but )?(?:the|this|that) {_THING}\b.{{0,60}}\b(?:not|n't|no longer|gone|removed)\b",
        rf"\b(?:this|that|the requested) {_THING} (?:doesn't|does not|no longer|never) exists?\b",
        r"\brequested (?:url|page|resource|file)\b.{0,120}\b(?:was not found|not found|could not be found|does not exist)",
        r"\byou may have (?:mistyped|followed)|\bthe link you followed|\bthe address may have been (?:mis)?typed",
        r"\bnothing (?:was )?found (?:at|for|here)|\bit (?:looks|seems) like nothing was found",
        r"\bseite,? (?:die sie|die du|nach der sie)\b.{0,80}(?:nicht|existiert|entfernt|verschoben)",
        r"\b(?:die|diese) (?:von ihnen )?(?:angeforderte|gesuchte|aufgerufene|gewünschte) (?:seite|datei|adresse)\b.{0,80}(?:nicht|entfernt|verschoben)",
        r"\b(?:wir konnten|konnten wir)\b.{0,40}\bseite\b.{0,40}\b(?:nicht )?finden",
        r"\bpage (?:que vous|demandée|recherchée)\b.{0,80}(?:introuvable|n'existe|n'est|supprimée|déplacée|pas)",
        r"\bnous (?:n'avons pas|ne parvenons pas|ne trouvons pas)\b.{0,40}\b(?:page|trouv)",
        r"\bpágina (?:que (?:buscas|busca|está buscando|estás buscando|has solicitado|ha solicitado|intentas|você))\b.{0,80}(?:no |não |eliminad|movid)",
        r"\bno (?:hemos podido|podemos|pudimos) encontrar\b.{0,40}\bpágina",
        r"(?:您|你)(?:要)?(?:访问|查找|查看|浏览|请求|尋找|造訪)的?.{0,12}(?:页面|网页|頁面|内容|文章|资源).{0,20}(?:不存在|删除|找不到|未找到|移动|失效|无法)",
        r"(?:お探し|ご指定|アクセスしようとした|リクエスト(?:された)?|お求め)の?(?:ページ|記事|url|ファイル).{0,40}(?:見つかりません|存在し|削除|移動|ありません)",
        r"\bstron\w+,? (?:której|którą)\b.{0,60}\b(?:nie (?:istnieje|została|można)|usunięt\w+|przeniesion\w+)|\b(?:la )?pagina (?:che (?:stai|hai|cerchi)|richiesta)\b.{0,60}\b(?:non|spostata|rimossa)|\b(?:de )?pagina die (?:u|je)\b.{0,60}\b(?:niet|verplaatst|verwijderd)|\bsidan (?:som )?du\b.{0,60}\b(?:inte|flyttats|tagits bort)|\bsiden (?:som )?du\b.{0,60}\bikke\b|\bstránk\w+,? kterou\b.{0,60}\b(?:neexistuje|nebyla|odstraněn\w+|přesunut\w+)|\b(?:aradığınız|istediğiniz|ulaşmaya çalıştığınız) sayfa\b.{0,60}|(?:찾으시는|요청하신|찾고 계신) 페이지.{0,30}(?:없|삭제|이동)",
        r"\b(?:le )?lien que vous avez suivi\b|\b(?:la|cette) page (?:a été|a peut-être été|a) (?:disparu|supprimée|déplacée)|\b(?:der|dem) link,? (?:dem|den) (?:sie|du)\b.{0,40}\b(?:gefolgt|angeklickt)|\bel enlace que (?:has|ha) seguido|\btrang (?:bạn|quý khách|mà bạn)\b.{0,40}(?:không tồn tại|đã bị|không tìm)|\bhalaman yang (?:anda|kamu)\b.{0,40}\btidak\b|\bpagina pe care\b.{0,40}\bnu\b|η σελίδα που (?:ζητήσατε|αναζητάτε).{0,40}δεν",
        r"\b(?:your|the) search (?:for )?.{0,80}(?:did not|didn't) match\b|\b(?:your|this) search\b.{0,80}\b(?:returned|yielded|produced|found|has|had) (?:no|0|nothing)\b|\b(?:sorry,? )?(?:there (?:are|were)|we (?:found|have)|we couldn't find any|no) (?:no )?(?:results|matches|matching \w+)(?: were)?(?: found)? (?:for|that match(?:es)?|matching) (?:your|[\"'·])",
        r"\b(?:ihre|deine) suche\b.{0,80}\bkeine (?:treffer|ergebnisse)|\bkeine (?:treffer|ergebnisse) (?:für|gefunden)|\baucun résultat (?:pour|ne correspond|n'a été|trouvé)|\bno se (?:han )?encontra\w+ (?:ningún )?resultados?|\b(?:nessun risultato|nenhum resultado|geen resultaten) (?:per|para|voor|trovato|encontrado|gevonden)|\b(?:nie znaleziono|brak) wyników|没有找到.{0,14}结果|抱歉.{0,4}没有找到|に一致する.{0,24}(?:ません|ありません)",
        r"запрашиваем\w+ (?:вами )?страниц\w+.{0,60}(?:не |удалена)",
    ),
    more=_any(
        r"\b(?:return|go|get|head) (?:back )?(?:to )?(?:the |our )?(?:home ?page|start|front page|home)\b",
        r"\b(?:check|verify) the (?:url|address|spelling)|\btry (?:the |our |a |using )*search|\bstart over from",
        r"\bzur startseite|\bpage d'accueil|\bpágina (?:de inicio|principal)|\bcheck your spelling\b|\btry (?:different|other|more general|fewer) (?:words|terms|keywords)|\bthe owner (?:only )?(?:shared|deleted|removed)|返回首页|返回主页|トップページ(?:へ|に戻)",
    ),
)

BOT_CHECK = ObstaclePhrases(
    title=_any(
        r"one moment,? please(?:\.\.\.)?|request unsuccessful|(?:we're |we are )?(?:verifying|checking|validating) your (?:browser|request|connection|device)(?:\.\.\.)?|just a moment(?:\.\.\.)?|nur einen moment(?:\.\.\.)?|einen moment(?: bitte)?(?:\.\.\.)?|un (?:instant|moment)(?:\.\.\.)?|un momento(?:\.\.\.)?|请稍候(?:\.\.\.)?|请稍等(?:\.\.\.)?|しばらくお待ちください(?:\.\.\.)?",
        r"attention required!?|security (?:check|checkpoint|verification)|(?:vercel )?security checkpoint|bot (?:check|verification|detection)|human verification|verification required",
        r"(?:please )?(?:verify|verifying|prove|confirm)(?:ing)? (?:that )?you(?:'re| are) (?:a )?(?:human|not a (?:ro)?bot)|are you (?:a )?(?:human|robot)\??|robot or human\??|robot check",
        r"ddos[- ]guard|checking your browser(?: before accessing.*)?(?:\.\.\.)?|making sure you're not a bot!?|one more step|access to this page has been denied|pardon our interruption(?:\.\.\.)?",
        r"captcha|(?:solve the )?captcha(?: required)?|recaptcha|geetest|百度安全验证|安全验证|人机验证|验证码|访问验证|滑动验证|セキュリティチェック|sicherheitsüberprüfung|sicherheitsabfrage|vérification de sécurité|verificación de seguridad",
        r"(?:human|browser) (?:check|challenge)|client challenge|challenge validation|bitte bestätigen sie,? dass sie (?:ein mensch|kein roboter) sind",
    ),
    sentences=_any(
        r"\bchecking (?:if the site connection is secure|your browser)\b|\b(?:verifying|validating) your (?:browser|request|connection|device)\b|\byour (?:request|browser|connection) is being (?:verified|checked|validated)",
        r"\b(?:enable|activate|turn on) javascript and cookies\b|\bjavascript and cookies (?:are|is|must)",
        r"\b(?:verify|verifying|confirm|prove|make sure|check(?:ing)?) (?:that |whether |if )?you(?:'re| are) (?:a |indeed a |really )?(?:human|person|not a (?:ro)?bot|real)",
        r"\bneeds to (?:review|verify) the security of your connection",
        r"\bcomplete the (?:captcha|security check|challenge|action)|\bsolve (?:the|this) (?:captcha|puzzle|challenge)|\b(?:press|tap|click) (?:and|&) hold\b|\bsecurity check to (?:access|continue)",
        r"\bunusual (?:traffic|activity) from your|\bautomated (?:queries|requests|access|traffic)\b.{0,60}\b(?:your|detected|blocked)|\b(?:looks|behaves?|browsing|acting) like (?:a |an automated )?(?:ro)?bots?\b|\bsomething about your browser made us think",
        r"\bplease enable (?:js|javascript) and disable any ad ?blocker|\bchecks? your browser before\b",
        r"\b(?:prüfen|überprüfen|überprüft|bestätigen|bestätige)\b.{0,50}\b(?:ihren browser|ein mensch|kein (?:ro)?bot|sicherheit ihrer verbindung)|javascript und cookies",
        r"\b(?:vérifi\w+|confirm\w+)\b.{0,50}\b(?:votre navigateur|êtes (?:bien )?(?:un |une )?(?:humain|être humain|personne|pas un robot)|sécurité de votre connexion)|javascript et (?:les )?cookies",
        r"\b(?:verific\w+|comprob\w+|confirm\w+)\b.{0,50}\b(?:tu navegador|su navegador|(?:eres|es|usted es) (?:un )?(?:ser )?humano|no (?:eres|es) un robot|seguridad de (?:tu|su) conexión)|javascript y (?:las )?cookies",
        r"\b(?:подтвердите|проверяем|проверка)\b.{0,50}\b(?:вы не робот|а не робот|человек|(?:вашего )?браузера)|(?:javascript|js) и (?:файлы )?cookie",
        r"(?:正在|需要)?(?:检查|验证|确认|檢查|驗證)(?:您|你)?(?:的)?(?:浏览器|瀏覽器|是否(?:是|为)?(?:真人|人类|机器人)|是真人|连接(?:是否)?安全)|请完成(?:安全)?(?:验证|下方验证)|启用 ?javascript ?和 ?cookie|拖动(?:下方)?滑块|请?(?:输入|填写)验证码",
        r"(?:ブラウザ|接続の安全性|人間である|ロボットではない|セキュリティ).{0,16}(?:確認|検証|チェック)して(?:い|くだ)|javascript ?と ?cookie",
    ),
    more=_any(
        r"\bray id\b|\bincapsula\b|\bcloudflare\b|\bperformance (?:&|and) security by\b|\bthis (?:process|may take|check)\b.{0,30}\b(?:automatic|seconds)|\b(?:reference|incident) id\b|\bblock reference\b",
    ),
    mark=_any(
        r"_cf_chl_opt|cf-chl-|cf_chl_|challenge-error-text|id=[\"']?challenge-(?:form|running|stage)",
        r"captcha-delivery\.com/(?:c|i)\.js|geo\.captcha-delivery|var dd ?= ?\{",
        r"px-captcha|window\._pxappid|_pxblockscript|aws-?waf-?captcha|awswafintegration|awswafcookiedomainlist|gokuprops",
        r"sec-if-cpt-container|sec-cpt-if|ak-challenge|_incapsula_resource[^>]{0,200}(?:incident|cwudnsai)|sucuri_cloudproxy_js|ddos-guard/js-challenge|anubis_challenge|within\.website/x/cmd/anubis|kpsdk-|/_bm/|vercel/security/static/challenge",
    ),
)

LOGIN_WALL = ObstaclePhrases(
    title=_any(
        r"(?:please )?(?:log|sign) ?(?:in|on)(?: (?:to|into|with|or|and|required|page|form|continue|your|account|sign|up|register|log|join)\b.{0,40})?",
        r"(?:user |member |account |customer )?(?:login|log-in|sign-in|signin)(?: (?:page|required|form|or register|or sign up|to continue))?|authentication required|(?:login|sign in) to continue.*|member login",
        r"zaloguj się|logowanie|přihlášení|přihlásit se|prihlásenie|logga in|logg inn|log ind|giriş(?: yap)?|로그인|đăng nhập|masuk|увійти|bejelentkezés|autentificare|kirjaudu(?: sisään)?|(?:fazer|faça) login|σύνδεση",
        r"(?:\w+ )?(?:login|sign in|anmelden)|anmeldung|einloggen|bitte (?:anmelden|einloggen|melden sie sich an)|(?:se )?connexion|connectez-vous|se connecter|identifiez-vous|(?:iniciar|inicia|inicie) sesión|acceder|accedi|entrar|inloggen|вход|войти",
        r"(?:用户|会员|帐号|账号|请)?(?:先)?(?:登录|登入|登陆)(?:后.{0,12}|帐号|账号)?|(?:会員)?ログイン(?:ページ|画面|してください)?|サインイン|로그인",
    ),
    sentences=_any(
        r"\b(?:you (?:must|need to|have to|should)|please|you'll need to|to continue,?|to (?:view|see|read|access)\b.{0,40},?) (?:first )?(?:be )?(?:log(?:ged)?|sign(?:ed)?)[- ]?in\b",
        r"\b(?:log|sign) in (?:or (?:register|sign up|join|create an account) )?(?:to (?:continue|view|see|read|access|proceed|your account)|with (?:your|google|facebook|apple|sso))",
        r"\b(?:this|the) (?:page|content|group|forum|profile|area|site)\b.{0,40}\b(?:only (?:available|visible|accessible) (?:to|for) (?:registered|logged|signed|members)|requires? (?:you to )?(?:a )?(?:log|sign)(?:ging)? ?in)",
        r"\brequires? (?:that )?(?:you|visitors|guests)(?: to)? (?:be |are )?(?:registered|register|logged|log|signed|sign)\b|\b(?:you are )?not authori[sz]ed to (?:read|view) (?:this|the)\b",
        r"\b(?:sie müssen|du musst|bitte|um\b.{0,40})\b.{0,30}\b(?:anmelden|einloggen|angemeldet|eingeloggt)|\b(?:melden sie sich|melde dich) (?:bitte )?(?:zuerst |hier |jetzt |mit (?:ihrem|deinem) konto )?an\b",
        r"\b(?:musisz|proszę|aby\b.{0,40},) (?:się )?zalog\w+|\b(?:pro|k)\b.{0,40}\b(?:se (?:musíte |prosím )?přihla\w+)|\b(?:devi|per\b.{0,40}) (?:effettuare (?:l'accesso|il login)|accedere al tuo account)|\b(?:você precisa|faça|é necessário) (?:fazer |estar )?log(?:in|ado)|\b(?:u moet|je moet|log) (?:eerst )?(?:ingelogd zijn|inloggen|in om)\b|\bdu måste (?:vara inloggad|logga in)|로그인(?:이 필요|하셔야|해 ?주세요|후)",
        r"\b(?:vous devez|veuillez|merci de)\b.{0,30}\b(?:vous connecter|vous identifier|être connecté)|\bconnectez-vous (?:pour|à|afin)",
        r"\b(?:debes|debe|tienes que|necesitas|por favor,?)\b.{0,20}\b(?:iniciar|inicia|inicie|haber iniciado) sesión|\binicia sesión (?:para|con)",
        r"(?:请|需要|您需要|你需要|必须)(?:先)?(?:登录|登入|登陆)|(?:登录|登入|登陆)后(?:才|即|方)?(?:可|能|可以|继续)?(?:查看|阅读|访问|浏览|继续)",
        r"(?:ログイン|サインイン)(?:して(?:ください|から|続行)|が必要|すると)|(?:閲覧|ご覧)には(?:ログイン|会員登録)",
    ),
    more=_any(
        r"\b(?:log|sign)[ -]?in\b|\banmelden\b|\bregistrier(?:e dich|en sie sich)\b|\beinloggen\b|\bse connecter\b|\biniciar sesión\b|登录|登入|ログイン",
        r"\b(?:forgot(?:ten)?|lost)(?: your| my)? (?:password|username)|\b(?:keep me (?:signed|logged) in|remember me|stay signed in)\b|\b(?:don't|do not) have an account|\bnew (?:to|user|customer|here)\b.{0,30}\?|\bcreate (?:an|a new|your) account|\bnot a member",
        r"\b(?:e-?mail|user ?name|phone)\b.{0,30}\bpassword\b|passwort vergessen|mot de passe oublié|(?:olvidaste|olvidado) tu contraseña|¿olvidaste|忘记密码|パスワードを(?:お)?忘れ",
    ),
    mark=re.compile(r"<input[^>]{0,300}type=[\"']?password"),
    most_rest=1_500,
)

COOKIE_WALL = ObstaclePhrases(
    title=_any(
        r"before you continue(?: to .{0,30})?|bevor sie (?:fortfahren|weitermachen|zu .{0,30} weitergehen).{0,30}|avant (?:de continuer|d'accéder).{0,30}|antes de (?:continuar|ir).{0,30}|在继续(?:之)?前.{0,20}|続行する前に|.{0,20}に(?:進む|移動する)前に",
        r"(?:we (?:value|care about|respect) )?your privacy(?: (?:choices|matters|settings))?|(?:cookie|privacy|consent) (?:consent|settings|preferences|wall|notice|banner|manager|center)|(?:manage |accept )?cookies?|consent(?: required)?|datenschutz-?einstellungen|cookie-einstellungen|gestion des cookies|votre vie privée.{0,30}|tu privacidad.{0,30}|.{0,40} is part of the .{0,30} family of brands",
        r"vaše soukromí.{0,20}|souhlas s cookies|vi (?:bruker|använder|bruger) (?:cookies|informasjonskapsler)|używamy (?:plików )?cookies|(?:we|this (?:site|website)) (?:and our partners )?us(?:e|es) cookies|continuer sans accepter|(?:we|this (?:site|website)) uses? cookies|(?:wir|diese (?:web)?seite) (?:verwende[nt]|nutz(?:en|t)) cookies|(?:wij|we) gebruiken cookies|deze (?:web)?site gebruikt cookies|(?:questo sito|noi) us(?:a|iamo)(?: i)? cookie|usamos cookies|(?:nous utilisons|ce site utilise) des cookies|szanujemy (?:twoją|państwa) prywatność|(?:la tua|a sua) (?:privacy|privacidade).{0,30}|(?:valoramos|respetamos) (?:tu|su) privacidad|(?:vi|wij|we) (?:bryr oss om|respekteren|värnar om) (?:din|uw|je) (?:integritet|privacy)|.{0,30}mit werbung und tracking.{0,30}",
        r"zustimmung (?:erforderlich|einholen)|mit werbung (?:weiterlesen|lesen)|.{0,30} mit werbung (?:und tracking )?(?:nutzen|weiterlesen)|cookie ?(?:同意|设置|设定)|プライバシー(?:設定|に関する選択)",
    ),
    sentences=_any(
        r"\b(?:accept|agree|consent|allow)\w*\b.{0,60}\b(?:to continue|to proceed|to access|to view|to read|before (?:you (?:can |may )?(?:continue|proceed|enter|access)|continuing|proceeding))|\bto (?:continue|proceed|access|read|view)\b.{0,60}(?:, |please |must |need to |have to )(?:\w+ )?(?:accept|consent|agree|allow)",
        r"\bpro (?:pokračování|vstup|přístup)\b.{0,60}\b(?:souhlas|přij)\w*|\ba (?:folytatáshoz|továbblépéshez)\b.{0,60}\b(?:fogad|hozzájárul|engedélyez)\w*|\bfor (?:at|å) (?:fortsætte|fortsette|læse|lese)\b.{0,60}\b(?:accept|samty|godkend|godta|godkjenn)\w*|\bdevam etmek için\b.{0,60}\b(?:kabul|onay|izin)\w*|\bpentru a continua\b.{0,60}\b(?:accept|acord|consim)\w*",
        r"\bper (?:continuare|proseguire|accedere)\b.{0,60}\b(?:accett|acconsent|consenso)\w*|\baby (?:przejść|kontynuować|czytać)\b.{0,60}\b(?:zgod|akcept|zaakcept)\w*|\bcookies?\b.{0,40}\b(?:door te gaan|verder te gaan|verder te lezen)|\bom (?:verder|door) te (?:gaan|lezen)\b.{0,60}\b(?:accept|akkoord|toestemming)\w*|\bpara continuar\b.{0,40}\b(?:aceit|consint|acept|consient)\w*|\bför att (?:fortsätta|läsa)\b.{0,60}\b(?:godkänn|samtyck|accepter)\w*|\bpour (?:continuer|accéder|lire)\b.{0,60}\b(?:acceptez|accepter|consent)\w*",
        r"\bbefore you continue\b|\bbevor sie\b.{0,40}\b(?:fortfahren|weiter)|\bavant de continuer|\bantes de continuar",
        r"\bum\b.{0,80}\b(?:fortzufahren|weiterzulesen|zu lesen|zugreifen|zuzugreifen|nutzen zu können)\b.{0,60}(?:zustimm|akzept|willig|stimmen)|\b(?:zustimm|akzept|einwillig)\w*.{0,60}\b(?:fortfahren|fortzufahren|weiterlesen|weiterzulesen|zu lesen|werbung (?:weiter|zu) ?lesen|kostenlos (?:weiter|lesen))|\bmit werbung (?:und tracking|weiter|lesen|nutzen)",
        r"\bpour (?:continuer|accéder|lire|poursuivre)\b.{0,80}\b(?:accept|consent)|\b(?:accept|consent)\w+.{0,60}\b(?:pour|et) (?:continuer|accéder|lire|poursuivre)",
        r"\bpara (?:continuar|acceder|leer|seguir)\b.{0,80}\b(?:acept|consent)|\b(?:acept|consent)\w+.{0,60}\b(?:para|y) (?:continuar|acceder|leer|seguir)",
        r"(?:接受|同意).{0,16}(?:才能|后|以|并|即可).{0,6}(?:继续|访问|浏览|阅读|查看)|(?:继续|访问|浏览|阅读).{0,10}(?:前|之前).{0,12}(?:接受|同意)",
        r"(?:同意|許可|承諾).{0,16}(?:続行|続ける|進む|お進み|ご覧)|(?:続行|閲覧|続ける|ご覧)(?:する|いただく)?(?:に|前に)は?.{0,20}(?:同意|許可)",
    ),
    more=_any(
        r"\bwe and our (?:\d[\d,.]* )?(?:\w+ )?(?:partners|vendors|third[- ]part)|\b(?:choose|click|select|press)(?:ing)?(?: on)? [\"“']?(?:accept|agree|reject|i agree|ok)\b|\bcookies?\b|クッキー|\binformation on (?:a|your) device|\bpartner\b.{0,40}\bdaten|\btraceurs\b",
        r"\b(?:accept|reject|allow|decline|refuse) all\b|\bmanage (?:options|preferences|choices|settings|cookies)|\bmore options|\bnecessary (?:cookies )?only|\blegitimate interest",
        r"\b(?:nos (?:\d+ )?partenaires et nous|nous et nos (?:\d+ )?partenaires|avec votre accord|noi e i nostri|nosotros y nuestros|wir und unsere|we and our|wij en onze|my i nasi|nós e os nossos)\b",
        r"\balle (?:akzeptieren|ablehnen)|\btout (?:accepter|refuser)|\b(?:aceptar|rechazar) todo|全部(?:接受|拒绝)|すべて(?:同意|拒否|許可)",
        r"\bpersonali[sz]ed (?:ads|content|advertising)|\badvertising and content measurement|\bwithdraw (?:your )?consent|\bprivacy (?:policy|settings|dashboard)",
    ),
    most_rest=700,
)

PAYWALL = ObstaclePhrases(
    title=_any(
        r"(?:subscribe|subscription required|subscribers? only|become a (?:member|subscriber))(?: (?:to|for)\b.{0,40})?",
        r"you(?:'ve| have) (?:reached|read|used|hit)\b.{0,30}\b(?:limit|free (?:articles?|stor(?:y|ies)))\b.{0,30}|(?:sie haben|du hast)\b.{0,40}\b(?:freien?|kostenlosen?) artikel\b.{0,30}",
        r"abonnieren|nur für abonnenten|réservé aux abonnés|solo para suscriptores|付费(?:内容|阅读)|会员专享|有料(?:会員限定|記事)|会員限定記事",
    ),
    sentences=_any(
        r"\b(?:remainder|rest|full (?:version|text)) of (?:this|the) \w+ is (?:only )?(?:available|reserved|accessible|open) (?:to|for)\b|\brequest access\b.{0,20}\bto read\b",
        r"\briservat\w+ agli abbonati|\bgià abbonato|\babbonati per (?:continuare|leggere)|\bexclusivo para assinantes|\bjá é assinante|\bassine (?:para|e (?:leia|continue))|\bword (?:nu )?abonnee|\b(?:al|reeds) abonnee\?|\balleen (?:toegankelijk )?voor abonnees|\btylko dla (?:subskrybentów|prenumeratorów)|\bmasz już (?:prenumeratę|subskrypcję)|\bbli prenumerant|\bredan prenumerant|\bför att läsa (?:vidare|hela)|\bkun for abonnenter|\ballerede abonnent|\bpouze pro předplatitele|\bmáte (?:již|už) předplatné",
        r"\bget (?:full |unlimited )?access to (?:the full|this|all|the rest of)\b",
        r"\b(?:subscribe|sign up|register|join|become a (?:member|subscriber)|start your (?:free )?trial)\b.{0,50}\b(?:to (?:continue|keep|read|unlock|access|finish|view|get (?:full|unlimited))|for (?:full|unlimited) access)",
        r"\b(?:this|the full|rest of (?:this|the)|the) (?:article|story|content|post|piece|page|report)\b.{0,50}\b(?:for|to) (?:paid |paying |registered |premium |our )*(?:subscribers|members)\b|\b(?:exclusive|reserved|available|only) (?:content )?(?:for|to) (?:paid |paying |premium |our )*(?:subscribers|members)(?: only)?\b",
        r"\b(?:you(?:'ve| have) (?:reached|read|used|hit)\b.{0,40}\b(?:limit|free articles?|free stor\w+))|\b(?:to (?:continue|keep) reading|continue reading this article|keep reading|read the full (?:article|story)),?.{0,50}\b(?:subscri|log in|sign in|register|account|trial|membership|become a member)|\balready a (?:subscriber|member)\b|\bunlock (?:this|the full) (?:article|story)",
        r"\b(?:jetzt )?weiterlesen\b.{0,40}\b(?:mit|abo|abonn|registr|plus|anmeld)|\b(?:nur|exklusiv) für (?:abonnent|plus-|premium|mitglieder)|\b(?:artikel|inhalt|text)\b.{0,40}\b(?:abonnent|kostenpflichtig|plus-abo|bezahl)|(?:^|\b(?:sie sind|sind sie|du bist|bist du) )bereits (?:abonnent|abonniert|kunde)|\babo abschließen",
        r"\b(?:réservé|reste à lire|la suite)\b.{0,60}\b(?:abonné|abonnez|à lire)|\babonnez-vous\b|\bdéjà abonné",
        r"\b(?:contenido|artículo|noticia)\b.{0,40}\b(?:exclusiv\w+|solo|reservad\w+)\b.{0,30}\bsuscript|\bsuscríbete (?:para|y)|\bya (?:eres|soy) suscriptor|\bpara seguir leyendo",
        r"(?:订阅|付费|购买|开通会员|成为会员|升级)(?:后|即可|以|才能|之后).{0,10}(?:阅读|查看|继续|解锁|全文)|(?:付费|会员|vip)(?:专享|可见|内容|文章)|剩余.{0,10}(?:内容|%).{0,10}(?:付费|订阅|解锁)|(?:阅读|查看)全文.{0,10}(?:订阅|付费|会员)",
        r"(?:この|本)?記事(?:は|の続き|の全文).{0,24}(?:有料|会員|購読|登録)|(?:続き|全文)(?:を|は|の).{0,20}(?:有料会員|会員登録|購読|ログイン)|有料会員(?:限定|になると)|残り:? ?\d+ ?文字",
    ),
    more=_any(
        r"\b(?:log|sign) in (?:via|through|with) (?:your |an )?institution|\baccess (?:through|via) your (?:institution|library)|\b(?:buy|purchase|rent) (?:this |the )?(?:article|chapter|pdf|issue)\b|\bview access options\b|\bpreview of subscription content\b",
    ),
    mark=re.compile(
        r"isaccessibleforfree[\"']?\s*[:=]\s*[\"']?(?:https?://schema\.org/)?false|class=[\"'][^\"']{0,80}\b(?:paywall|piano-|tp-modal|subscriber-only|regwall)"
    ),
    most_rest=1_200,
)

REGION_BLOCK = ObstaclePhrases(
    title=_any(
        r"(?:error |http )?451(?: unavailable.{0,30})?|unavailable for legal reasons|(?:not|un)available in your (?:country|region|location|area)|.{0,40}(?:not|un)available in your (?:country|region|location)|(?:our )?european visitors are important to us|geo-?blocked|region (?:not supported|blocked|restricted)",
        r".{0,30}in (?:ihrem|deinem) land nicht verfügbar|.{0,20}(?:pas |in)disponible dans votre (?:pays|région)|.{0,20}no (?:está )?disponible en (?:tu|su) (?:país|región)|.{0,10}(?:您|你)所在的?(?:国家|地区|區域).{0,14}|.{0,6}お住まいの(?:国|地域).{0,20}",
    ),
    sentences=_any(
        r"\b(?:not|n't|un)\s?(?:currently )?(?:available|accessible|supported|offered|permitted|licensed)\b.{0,40}\b(?:in|from|to|for) (?:visitors (?:in|from) )?(?:your|most) (?:current )?(?:country|region|location|area|european countries|jurisdiction)",
        r"\b(?:this (?:content|video|site|website|page|service)|we|access)\b.{0,60}\b(?:blocked|unavailable|restricted|cannot (?:be )?(?:grant|serve|provide)\w*|denied|prohibited)\b.{0,60}\b(?:your (?:country|region|location)|country|european (?:economic area|union|visitors)|eea|gdpr)",
        r"\bcan (?:only|currently only) be (?:watched|viewed|played|accessed|streamed|seen) (?:in|from|within)\b|\b(?:licen[sc]ing|rights|legal|copyright) (?:restrictions|reasons)\b.{0,80}\b(?:only|not|cannot|can't|unavailable|unable)\b",
        r"\b(?:attempting|trying) to access this (?:website|site|page|content) from a (?:country|region|location)|\bunavailable (?:due to|for) legal reasons|\bvisitors (?:from|in|outside)\b.{0,50}\bare important to us",
        r"\bin (?:ihrem|deinem|ihrer|deiner) (?:land|region)\b.{0,30}\bnicht\b|\bnicht\b.{0,20}\bin (?:ihrem|deinem) land\b|\bdans votre (?:pays|région)\b|\ben (?:tu|su) (?:país|región|ubicación)\b",
        r"(?:您|你)(?:所在|当前)的?(?:国家|地区|地區|国家或地区|区域).{0,20}(?:不可用|无法|不支持|不提供|限制|未开放)|(?:不|无法)(?:在|于)(?:您|你)所在.{0,8}(?:提供|访问)|お住まいの(?:国|地域).{0,24}(?:利用|視聴|ご覧|アクセス|表示)(?:でき|いただけ)",
    ),
    most_rest=1_000,
)

AGE_GATE = ObstaclePhrases(
    title=_any(
        r"(?:age )(?:verification|gate|check|restricted|restriction|confirmation)(?: required)?|(?:please )?(?:verify|confirm) your age|are you (?:over |at least |of legal |aged )?(?:\d\d|old enough|legal drinking age|drinking age)(?: (?:years )?(?:of age|old|or older|\+))?.{0,20}|adults? only|(?:mature|adult) content(?: warning)?|welcome! are you.{0,40}|content warning",
        r"alters(?:prüfung|abfrage|verifikation|bestätigung|kontrolle)|(?:sind sie|bist du) (?:über |mindestens )?\d\d.{0,20}|vérification (?:de l'|d')âge|(?:avez-vous|êtes-vous).{0,20}(?:\d\d ans|majeur).{0,10}|verificación de edad|(?:eres|es usted) mayor de (?:edad|\d\d).{0,10}|年龄(?:验证|确认|限制)|(?:您|你)(?:是否)?(?:已)?年?满 ?\d\d.{0,10}|年齢(?:確認|認証|制限)|(?:あなたは)?\d\d歳以上ですか",
    ),
    sentences=_any(
        r"\byou (?:must|need to|have to) be (?:at least |over |of )?(?:\d\d|legal|the legal)\b.{0,60}|\b(?:verify|confirm|enter)(?:ing)? (?:that you are |you are |you're |your )(?:at least |over |of )?(?:\d\d|age|legal|date of birth|birth ?(?:date|day|year)|old enough)|\bare you (?:over|at least|of legal|aged|\d\d)\b.{0,40}|\bi(?:'m| am) (?:over |at least |under )?(?:18|19|20|21)\b.{0,24}|\b(?:contains|may contain) (?:adult|mature|explicit) (?:content|material)|\bplease enter your (?:date of birth|birth ?date|age)",
        r"\b(?:sie müssen|du musst)\b.{0,20}\b(?:\d\d jahre|volljährig)|\b(?:bestätigen|bestätige)\b.{0,40}\b(?:alter|\d\d jahre|volljährig)|\b(?:sind sie|bist du)\b.{0,20}\b\d\d\b",
        r"\b(?:vous devez|confirme[rz]|certifie[rz]?)\b.{0,50}\b(?:\d\d ans|majeur|âge)|\bavez-vous (?:plus de )?\d\d ans|\b(?:debes|debe|confirm\w+|eres|soy)\b.{0,30}\b(?:mayor de|\d\d años|edad)",
        r"(?:您|你|请|我)?(?:必须|需要|确认|已|是否)?.{0,6}年?满 ?\d\d ?(?:周)?岁|未满 ?\d\d ?岁.{0,10}(?:禁止|请|不得)|\d\d歳(?:以上|未満).{0,16}(?:ですか|確認|閲覧|ください|できません|ご遠慮|方)|年齢を(?:確認|入力)",
    ),
    more=_any(
        r"\b(?:yes,? i|i am (?:over|under|\d\d)|i'm (?:over|under|\d\d)|enter (?:the )?site|leave (?:the )?site|exit|under \d\d|\d\d\+|enter)\b|\b(?:ja|nein)\b|\b(?:oui|non)\b|\bsí\b|^是|我(?:已|未)|はい|いいえ|进入|离开",
    ),
    most_rest=800,
)

ERROR_PAGE = ObstaclePhrases(
    title=_any(
        r"(?:http |error |code |status )*(?:400|401|403|405|407|408|429|500|501|502|503|504|520|521|522|523|524|525|526|1020)(?: (?:error|bad request|unauthorized|forbidden|method not allowed|too many requests|internal server error|not implemented|bad gateway|service (?:temporarily )?unavailable|gateway time-?out|web server is down|origin.{0,20}|connection timed out))*",
        r"(?:error )?(?:access (?:to this page )?(?:has been )?denied|forbidden|unauthorized|bad request|internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out|too many requests|request (?:blocked|rejected|denied)|server error(?: in .{0,40})?|application error|runtime error|unexpected error|an error (?:has )?occurred|something went wrong|oops!?(?: something went wrong)?|error|sorry, you have been blocked|you have been blocked|web server is down|rate limit(?:ed| exceeded)?|this site can't be reached|problem loading page|connection timed out|host error)[.!]?",
        r"(?:we'll be (?:right )?back(?: soon| shortly)?|be right back|(?:site |website |scheduled )?(?:under |down for |is down for )?maintenance(?: mode)?|site (?:is )?(?:temporarily )?unavailable|(?:account|site|website) (?:has been )?suspended|(?:this )?domain (?:name )?(?:has expired|is for sale|for sale|parked|expired)|.{3,40} is for sale|website expired|error establishing a database connection|database error)[.!]?",
        r"wir sind (?:gleich|bald|in kürze) (?:zurück|wieder (?:da|für sie da))|nous revenons (?:bientôt|vite)|volvemos (?:pronto|enseguida)|torniamo (?:presto|subito)|we zijn (?:zo|snel) terug|vi är (?:snart )?tillbaka(?: snart)?|przerwa techniczna|технические работы",
        r"zugriff verweigert|zugang verweigert|wartungsarbeiten|wartungsmodus|(?:ein )?fehler(?: ist aufgetreten)?|interner serverfehler|accès (?:refusé|interdit)|(?:une )?erreur(?: est survenue| serveur)?|maintenance en cours|acceso denegado|(?:ha ocurrido un )?error(?: del servidor| interno)?|en mantenimiento",
        r"(?:403 ?)?(?:访问被(?:拒绝|禁止|拦截)|拒绝访问|禁止访问|存取被拒)|(?:系统|网站)?维护中|服务器(?:内部)?错误|出错了|系统繁忙|アクセス(?:が)?(?:拒否|禁止)(?:されました)?|(?:システム)?エラー(?:が発生しました)?|(?:ただいま)?メンテナンス中(?:です)?",
    ),
    sentences=_any(
        r"\byou (?:don't|do not) have (?:permission|access)\b.{0,60}\b(?:access|view|this|\")|\byour (?:ip(?: address)?|request|access|browser|connection)\b.{0,40}\b(?:has been|was|is) (?:temporarily )?(?:blocked|denied|banned|rejected|refused|limited)|\byou (?:have been|are|were) (?:blocked|banned|denied|rate[- ]limited)|\byou are (?:not authorized|unable to access)|\bthe requested url was rejected",
        r"\b(?:the )?server (?:encountered|is (?:temporarily |currently )?(?:unable|unavailable|overloaded|busy|down)|returned an|didn't respond|was unable)|\binternal (?:server )?error\b.{0,60}|\b(?:something|sorry,? something) (?:has gone|went|'s gone) wrong\b|\ban? (?:unexpected |unknown |internal |server )?error (?:has )?occurred\b|\bplease (?:try|reload|refresh)\b.{0,30}\b(?:again|later|the page)\b|\bwe(?:'re| are) (?:experiencing|having)\b.{0,30}\b(?:technical|difficult|issues|problems|trouble)",
        r"\bwe(?:'re| are| will|'ll)\b.{0,30}\b(?:be (?:right )?back|performing|undergoing|down for|doing)\b.{0,30}(?:maintenance|upgrade|soon|shortly|back)?|\b(?:site|website|service|page) is (?:currently |temporarily )*(?:down|unavailable|offline|undergoing|under maintenance)|\b(?:account|website|site) has been (?:suspended|disabled)|\bdomain (?:name )?(?:is|may be|has|was)\b.{0,30}\b(?:for sale|expired|parked|registered)|\bbuy this domain\b|\bcontact your hosting provider|\berror establishing a database connection|\bapplication error\b.{0,40}\bclient-side exception|\bexceeded the (?:number of|rate|request)|\btoo many requests\b.{0,30}",
        r"\b(?:sie haben|du hast) keine (?:berechtigung|zugriffsrechte)|\b(?:ihre|deine) (?:ip|anfrage)\b.{0,30}\b(?:gesperrt|blockiert|abgelehnt)|\bes ist ein (?:\w+ )?fehler aufgetreten|\bversuchen sie es (?:bitte )?(?:später|erneut|noch)|\bvorübergehend nicht (?:erreichbar|verfügbar)|\bwartungsarbeiten\b.{0,30}|\b(?:seite|website|dienst|shop)\b.{0,30}\b(?:derzeit|momentan|zurzeit|gerade) nicht (?:erreichbar|verfügbar)",
        r"\bvous n'(?:avez|êtes) pas\b.{0,30}\b(?:autoris|permission|droit|accès)|\bune erreur (?:est survenue|s'est produite|inattendue)|\b(?:veuillez )?réessaye[rz]\b|\b(?:site|service)\b.{0,30}\b(?:en maintenance|indisponible)|\bno tienes? permiso|\bno tiene permiso|\b(?:ha ocurrido|se ha producido|se produjo) un error|\b(?:inténtelo|inténtalo|vuelva a intentarlo|intente)\b.{0,20}|\b(?:temporalmente|actualmente)\b.{0,20}(?:fuera de servicio|no disponible|mantenimiento)",
        r"(?:您|你)(?:没有|无)(?:权限|权访问)|(?:您|你)的(?:请求|访问|ip).{0,12}(?:被|已).{0,4}(?:拒绝|拦截|阻止|封禁|禁止|限制)|(?:服务器|系统).{0,8}(?:错误|繁忙|异常|维护)|请稍后(?:再试|重试)|(?:网站|系统|页面).{0,8}(?:正在)?维护",
        r"アクセス(?:する)?権限がありません|アクセスが(?:拒否|制限|集中)|エラーが発生し(?:ました|ています)|(?:しばらく|時間を)(?:して|置いて|おいて|経って).{0,10}(?:再度|もう一度|お試し|アクセス)|メンテナンス(?:中|を(?:実施|行))",
    ),
    more=_any(
        r"\breference\s?(?:&#35;|#|:|number|id)|\b(?:error|incident|support|request|event|block|ray) (?:id|code|reference|number)\b|\bapache/|\bnginx(?:/|\b)|\bopenresty\b|\bvarnish\b|\bcloudfront\b|\bguru meditation\b|\bxid:",
    ),
    mark=re.compile(
        r"edgesuite\.net/\d|errors\.edgesuite|class=[\"']?cf-error-(?:details|code)|generated by cloudfront|varnish cache server|sedoparking|parkingcrew|bodis\.com"
    ),
    most_rest=1_500,
)

EMPTY_SHELL = ObstaclePhrases(
    title=_any(
        r"(?:please )?enable javascript.{0,30}|javascript (?:is )?(?:required|disabled|not enabled)|loading(?:\.\.\.)?"
    ),
    sentences=_any(
        r"\b(?:enable|activate|turn on|allow|requires?|needs?|without|support)\b.{0,30}\bjava ?script\b|\bjava ?script\b.{0,40}\b(?:required|disabled|enabled?|turned off|not (?:enabled|supported|available)|to (?:run|view|use))|^\W*loading\b|\bloading\W*$|\bplease wait\b",
        r"java ?script.{0,40}(?:aktivier|einschalten|benötigt|deaktiviert|activ|désactiv|habilit|desactivad|necesari|启用|開啟|開啟|禁用|支持|有効|無効|必要|オン)|(?:aktivier\w+|activer|activez|active|habilit\w+|启用|请开启|请打开)\b.{0,20}java ?script|(?:wird|werden) geladen|chargement (?:en cours|\.\.\.)|^cargando|加载中|正在加载|请稍候|読み込み中|ロード中",
    ),
    most_rest=20,
)

OBSTACLES: Mapping[ObstacleKind, ObstaclePhrases] = {
    "bot check": BOT_CHECK,
    "not found": NOT_FOUND,
    "region block": REGION_BLOCK,
    "age gate": AGE_GATE,
    "paywall": PAYWALL,
    "cookie wall": COOKIE_WALL,
    "login wall": LOGIN_WALL,
    "error page": ERROR_PAGE,
    "empty shell": EMPTY_SHELL,
}
"""All kinds; of equally likely ones the first is chosen."""

EXPLAINING = re.compile(
    r"\b(?:means|refers? to|defined as|stands for|status codes?|response codes?|developers?|webmasters?|(?:web)?site owners|visitors|"
    r"users (?:see|get|are|can|who)|the user|how (?:to|do i|can i)|why (?:do|does|am|is)|for example|for instance|e\.g\.|such as|"
    r"i (?:get|see|got|keep|am getting|was|wrote|think)|i'm getting|i've|my (?:site|app|script|scraper|browser|code|server|blog)|"
    r"(?:this|the|our) (?:guide|tutorial|essay|song|album|film|novel|book|chapter|paper|study|survey|law|regulation)|according to|"
    r"(?:was|were) (?:released|written|published|founded|born|introduced|recorded)|is an? (?:\w+ ){0,2}(?:song|novel|film|album|standard|"
    r"technique|practice|error|law|message|phrase|component|function|response|header|plugin|library|band|game|series)|"
    r"rfc \d+|(?:the|a) (?:response|client|server|request) (?:may|must|should|can|answers|sends|has)|(?:defined|added|introduced|standardi[sz]ed) (?:in|by)|named after|"
    r"of the (?:web)?site owner|ask the \w+ to|return (?:a )?\d{3}|crawlers|search engines|"
    r"users (?:to|then|must|have|with)|configur\w+|survey|readers (?:who|that|are|left|found)|found that|\d+ (?:percent|per cent)|exempt|member states?|"
    r"since (?:january|february|march|april|may|june|july|august|september|october|november|december|\d{4})|"
    r"it's all about|he |she |his |her |said|says)\b"
    r"|\b(?:bedeutet|statuscode|entwickler|betreiber|webmaster|beispielsweise|zum beispiel|z\.b\.|dieser (?:leitfaden|beitrag)|wie man|ich bekomme|meine seite|"
    r"sogenannte|urteil|gericht|studie|erklärt|bezeichnet)\b"
    r"|\b(?:signifie|désigne|développeurs?|webmestres?|par exemple|cet (?:article explique|ouvrage)|ce guide|comment (?:créer|corriger|faire)|internautes|selon|étude|cnil)\b"
    r"|\b(?:significa|desarrollador\w*|por ejemplo|esta guía|cómo (?:crear|corregir|hacer|solucionar)|usuarios|según|estudio|se refiere)\b"
    r"|是指|表示|意思是|意味着|开发者|站长|例如|比如|本文|如何|状态码|用户|研究|指的是|作者|小说|电影"
    r"|とは|意味|開発者|例えば|この記事では|方法|ステータスコード|ユーザー|研究|小説|映画|著者"
)
"""Words of a text about such pages; none of them speaks to a reader who wanted another page."""

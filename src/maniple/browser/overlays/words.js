// What people read on overlays, and on what only looks like one.

// A pattern over several lines; their beginnings do not count.
const words = ({ raw }) => new RegExp(raw[0].replace(/\s*\n\s*/g, ""), "i");

// Each is compared with a whole label, from its first letter.
const LABELS = {
  // What a person came for: what holds such a button is no overlay.
  task: words`
    ^add\b|\b(?:cart|basket|checkout|check out|pay|buy|purchase|order|book|reserve)\b|^(?:log|sign)[ -]?in\b|\blog ?in\b
    |^(?:register|create|save|delete|remove|confirm|apply|upload|search|update|edit|select|choose|cancel|verify|finish)\b
    |^(?:done|print|rename|discard|retry|try again|play|share|copy|invite|assign|publish|transfer|withdraw|approve)\b
    |^(?:reply|change|mark|unsubscribe|retake|details)\b
    |\b(?:accept|decline) (?:the |this |my )?(?:offer|invitation|invite|terms|order|request|job|quote|challenge|changes?)
    |^(?:bestellen|kaufen|anmelden|einloggen|speichern|löschen|weiter|acheter|commander|se connecter|enregistrer)\b
    |^(?:comprar|iniciar sesión|guardar)\b`,
  reject: words`
    ^(?:i )?(?:reject|decline|refuse|deny|disagree|opt[ -]?out|object|disallow)
    (?: (?:to )?(?:all|everything|them|optional|additional|non-essential|non-necessary|(?:all )?(?:cookies|tracking)))*
    (?: (?:and|&) (?:close|continue))?$
    |^(?:i )?(?:do not|don't|don’t) (?:accept|agree|allow|consent|sell|track)|^no,? (?:reject|i don.t)
    |^continue without (?:accepting|agreeing|consent)
    |^(?:alle(?:s)? )?(?:cookies )?(?:ablehnen|verweigern)$|^nicht (?:akzeptieren|zustimmen)
    |^ohne (?:zustimmung|einwilligung)|^(?:tout |je )?refuse[rz]?(?: tout| les cookies)?$|^continuer sans accepter
    |^(?:rechazar|denegar|rechazo)(?: tod[oa]s?| las cookies)*$|^(?:rifiuta|nega)(?: tutt[oi])?(?: i cookie)?$
    |^continua senza accettare|^(?:rejeitar|recusar)(?: tud?os?| todos| cookies)*$|^(?:alles |cookies )?(?:weigeren|afwijzen)$
    |^odrzuć(?: wszystk\S+)?$|^(?:avvisa|neka|afvis|avvis)(?: alla?e?| alt)?$
    |^(?:全部)?拒绝(?:全部|所有)?|^すべて拒否|^拒否|^отклонить`,
  necessary: words`
    (?:only|just|strictly|use|accept|allow).{0,12}(?:necessary|essential|required)
    |^(?:necessary|essential|required)(?: cookies)? only$
    |nur (?:technisch )?(?:notwendige|essen[tz]ielle|erforderliche)|(?:uniquement|seulement).{0,20}(?:nécessaires|essentiels)
    |(?:solo|sólo).{0,20}(?:necesarias|esenciales|necessari)|(?:apenas|somente).{0,20}(?:necessários|essenciais)
    |(?:alleen|enkel).{0,20}noodzakelijk|tylko niezbędne|仅.{0,4}必要`,
  close: words`
    ^(?:[x×✕✖✗⨯🗙⊗]|close|dismiss|hide|skip|no|later)$
    |^(?:close|dismiss|hide)
    (?: (?:this|the|dialog|modal|popup|pop-up|window|banner|message|notice|overlay|form|ad|button|cookie|x|×))+$
    |^no,? ?(?:thanks|thank you|thx)|^not (?:now|today|interested)
    |^(?:maybe|remind me|ask me)(?: again)? (?:later|another time|tomorrow)|^skip (?:for now|this|tour|intro)
    |^(?:i(?:.|’)?ll|i will) (?:pass|do it later)|^continue (?:to|on|in) (?:the )?(?:web ?site|site|browser|page)
    |^(?:schlie(?:ß|ss)en|nein,? danke|später|fermer|non,? merci|plus tard|cerrar|no,? gracias|chiudi|no,? grazie)$
    |^(?:fechar|não,? obrigad[oa]|sluiten|nee,? (?:bedankt|dank je)|zamknij|nie,? dziękuję|stäng|luk|lukk)$
    |^(?:关闭|稍后|閉じる|закрыть|닫기)$`,
  acknowledge: words`
    ^(?:ok(?:ay|ey)?|got it|understood|all right|alright|fine|i (?:understand|see)|i got it|continue|great|thanks|cool)$
    |^(?:ok|okay),? (?:got it|thanks|i understand|close)
    |^(?:verstanden|alles klar|compris|j.ai compris|entendido|de acuerdo|ho capito|va bene|entendi|begrepen|rozumiem)$
    |^(?:知道了|了解)$`,
  accept: words`
    ^(?:i |yes,? i )?(?:accept|agree|allow|consent|enable)
    (?: (?:to )?(?:all|everything|cookies|and (?:close|continue)|& (?:close|continue)))*$|^(?:that.s|it.s) (?:ok|fine)
    |^(?:alle(?:s)? )?(?:cookies )?(?:akzeptieren|zulassen|annehmen|zustimmen)$|^(?:ich )?(?:stimme zu|bin einverstanden)
    |^(?:tout |j.)?accepte[rz]?(?: tout| les cookies)?$|^aceptar(?: tod[oa]s?| las cookies)*$|^acepto$
    |^accett[ao](?: tutt[oi])?$|^aceitar(?: tudo| todos| cookies)*$|^(?:alles |cookies )?(?:accepteren|toestaan)$
    |^akceptuj\S*(?: wszystk\S+)?$|^(?:全部)?(?:接受|同意)|^同意する|^すべて(?:許可|同意)|^принять`,
  // What the overlay is there for; whoever wants to pass by never clicks it.
  bait: words`
    ^(?:subscribe|sign (?:me )?up|join|get|unlock|claim|donate|give|shop|view|see|learn|discover|explore|allow|enable)\b
    |^(?:turn on|install|download|open|yes|sure|count me|notify|start|try|upgrade|submit|send|go|continue with|i want)\b
    |^(?:i.m in|spin)\b`,
};

const COOKIES = /\bcookies?\b|témoins de connexion|ciasteczk|クッキー|файлы cookie/i;

// Of cookies that nobody bakes.
const COOKIE_SIGNALS = [
  words`
    \b(?:uses?|using|use of|set|place|store|accept|our|these|all|manage|about) (?:\w+ ){0,3}cookies?\b
    |\bcookies? (?:policy|settings?|preferences?|notice|consent|to|and (?:similar|other)|are|for|on)\b`,
  /(?:verwende|utilis|utiliza|utilizza|usamos|usiamo|gebruik)\w* .{0,20}cookies?/i,
  words`
    クッキー.{0,6}使用|使用.{0,8}cookie|サイト|网站|сайт|stron[aęy]|webbplats|nettsted|hjemmeside|webové stránky
    |verkkosivu`,
  words`
    \b(?:this|our|the) (?:web ?)?(?:site|page|app)\b|\bwebsite\b|diese (?:web)?(?:seite|site)|ce site|este sitio
    |questo sito|deze (?:web)?site`,
  words`
    \b(?:best|better|improve|enhance|your) .{0,20}(?:experience|browsing)\b|nutzererlebnis|meilleure expérience
    |mejor experiencia`,
  /\blearn more\b|\bmore info(?:rmation)?\b|mehr erfahren|en savoir plus|más información/i,
];

const TRACKING = words`
  \b(?:analytics?|analy[sz]e|statistics?|advertis\w+|ads|tracking|trackers?|third[ -]part(?:y|ies)|partners|vendors)\b
  |\b(?:personali[sz]\w+|targeted|traffic|device|website|services)\b`;

const PRIVACY_SIGNALS = [
  words`
    \bprivacy\b|datenschutz|confidentialité|privacidad|riservatezza|\bgdpr\b|\bccpa\b|\bdsgvo\b|\brgpd\b|隐私`,
  /\b(?:consent|einwilligung|consentement|consentimiento|consenso|toestemming)\b/i,
  TRACKING,
  words`
    \b(?:personal (?:data|information)|your data|data protection|additional services|purposes)\b|personenbezogene
    |données personnelles|datos personales`,
];

// Somebody asks for a decision that is not about data.
const OFFER = words`
  \b(?:offer|invitation|invited|job|contract|agreement|terms of (?:service|use)|terms (?:and|&) conditions|order)\b
  |\b(?:payment|recipe|ingredients?|bake|baking|dough|appointment|treatment|form)\b`;

const KINDS = [
  [
    "newsletter",
    words`
    news ?letter|\bsubscribe\b|mailing list|\b(?:your|the) inbox\b|email (?:updates|list|alerts)
    |sign ?up (?:for|to|and) .{0,30}(?:news|updates|offers|deals|save|email|% ?off|list)
    |infolettre|boletín|nieuwsbrief|订阅`,
  ],
  [
    "notification",
    /(?:show|send|enable|allow|turn on|receive) .{0,30}notifications|push notifications|notify you/i,
  ],
  [
    "app",
    words`
    (?:get|download|try|open|use|install|better|view|continue)(?: it)?(?: on| in)? (?:the|our)(?: \w+){0,3} app\b
    |app store|google play|\bopen in app\b`,
  ],
  [
    "promotion",
    words`
    \d+ ?% ?(?:off|discount|rabatt)|\b(?:special|exclusive|limited|welcome)(?:[ -]time)? (?:offer|deal|discount|gift)
    |\b(?:discount|promo) code|flash sale|don.t miss|free shipping|spin (?:the wheel|to win)|win a\b|black friday
    |ad ?block|\badvertisement\b|\bsponsored\b|upgrade to (?:pro|premium|plus)|\bplease donate|\bsupport (?:us|our)\b
    |become a (?:member|supporter)`,
  ],
  [
    "survey",
    words`
    (?:quick|short|brief|our) (?:survey|questionnaire)|(?:rate|how was) your (?:experience|visit)
    |your (?:feedback|opinion) (?:matters|helps|counts)|take (?:a|our) survey|how likely are you to recommend`,
  ],
  [
    "announcement",
    words`
    \bwelcome\b|what.s new|announc|introducing|before you go|wait!|leaving (?:so soon|already)
    |new (?:look|version|feature|design|collection)|thanks? (?:you )?for visiting|take (?:a|the) tour|did you know
    |we.ve (?:updated|changed|moved)|maintenance|happy holidays`,
  ],
];

const CHAT = words`
  \bchat\b|how (?:can|may) (?:we|i) help|type (?:a|your) message|talk to (?:us|an? )|ask (?:us|me) anything
  |virtual assistant|support agent`;

// Somebody's mail, settings or way out, which a page has for its own sake.
const MANAGED = words`
  unsubscri|\b(?:newsletter|email|notification|subscription) (?:settings|preferences)|manage (?:your|my)\b
  |your (?:coupon|subscription|plan)\b|\bfilters?\b`;

// A window that speaks of these in a few words may be what the person came for.
const BUSINESS = words`
  [$€£¥₹] ?\d|\d ?(?:€|eur|usd|zł)\b
  |\b(?:price|size|quantity|in stock|order|cart|checkout|payment|invoice|shipping address|delivery|booking|reservation)\b
  |\b(?:are you sure|confirm|error|failed|invalid|required|warning|verify|verification|captcha|robot|human|password)\b
  |\b(?:log ?in|sign ?in|account|age|years old|over 18|delete|unsaved|session|timed? ?out|terms|recipe|ingredients?)\b
  |\b(?:step \d|question|answer|result|score|game|level|code|reference|details|products?|items?|model|brand|material)\b
  |\b(?:colou?rs?|weight|servings|oven|minutes|permission|location|language|country|region|currency)\b`;

// Marks that tools of each kind put on what they show.
const TOOLS = [
  [
    "consent",
    `
    #onetrust-banner-sdk, #onetrust-consent-sdk, #CybotCookiebotDialog, #usercentrics-root, #usercentrics-cmp-ui,
    .qc-cmp2-container, #qc-cmp2-ui, #didomi-host, #truste-consent-track, .truste_box_overlay, [id^=sp_message_container],
    .fc-consent-root, .osano-cm-window, #iubenda-cs-banner, .klaro, #klaro, [class^=orejime-], #cc-main, .cc-window,
    #tarteaucitronRoot, #cookiescript_injected, .cky-consent-container, .cmplz-cookiebanner, #cookie-law-info-bar, #cmpbox,
    .termly-styles-root, #axeptio_overlay, #hs-eu-cookie-confirmation, .cookiefirst-root, .cookiealert, .cookie-though,
    cookie-consent-banner, #cookieNotice`,
  ],
  [
    "newsletter",
    `
    .mailpoet_form_popup, .mailpoet_form_slide_in, #PopupSignupForm_0, .mc-modal, .leadinModal,
    [id^=hs-interactives-modal], .klaviyo-form, [data-testid=klaviyo-form], .om-holder, .om-popup, .privy-popup-container,
    .optinmonster, .bx-campaign, .ml-form-embedContainer, .convertkit-overlay, .formkit-overlay, .pum-overlay,
    .wisepops-root, .sg-popup-content, .poptin-popup, [id^=omnisend]`,
  ],
  ["app", ".smartbanner, .smart-banner, .smart-app-banner, #branch-banner, .branch-journeys-top"],
  [
    "notification",
    `
    #onesignal-slidedown-container, .onesignal-slidedown-dialog, .pushcrew-chrome-style-notification, .webpush-prompt`,
  ],
];

"""Pages that real packages of the npm registry cover: consent banners, windows, newsletter boxes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.crawler.web import Reply

JQUERY = '<script src="/npm/jquery/dist/jquery.min.js"></script>'
NEWS = """<h2>Join our newsletter</h2><p>Get 10% off your first order and news once a week.</p>
<form><input type="email" placeholder="Your email"><button type="submit">Subscribe</button></form>"""
COOKIES = "This website uses cookies to give you the best experience and to analyse traffic."


@dataclass(frozen=True, slots=True)
class Covered:
    """A page with something over it."""

    package: str
    html: str
    """What makes the package show itself, as its documentation says."""
    obstacle: str
    """Selects what must no longer be in sight."""


COVERED = (
    Covered(
        "cookieconsent",
        """<link rel="stylesheet" href="/npm/cookieconsent/build/cookieconsent.min.css">
        <script src="/npm/cookieconsent/build/cookieconsent.min.js"></script>
        <script>window.cookieconsent.initialise({});</script>""",
        ".cc-window",
    ),
    Covered(
        "vanilla-cookieconsent",
        """<link rel="stylesheet" href="/npm/vanilla-cookieconsent/dist/cookieconsent.css">
        <script src="/npm/vanilla-cookieconsent/dist/cookieconsent.umd.js"></script>
        <script>CookieConsent.run({hideFromBots: false, categories: {necessary: {enabled: true, readOnly: true}, analytics: {}},
          language: {default: "en", translations: {en: {
            consentModal: {title: "We use cookies", description: "Cookie modal description",
              acceptAllBtn: "Accept all", acceptNecessaryBtn: "Reject all", showPreferencesBtn: "Manage preferences"},
            preferencesModal: {title: "Manage cookie preferences", acceptAllBtn: "Accept all", acceptNecessaryBtn: "Reject all",
              savePreferencesBtn: "Accept current selection", closeIconLabel: "Close modal",
              sections: [{title: "Analytics", description: "…", linkedCategory: "analytics"}]}}}}});</script>""",
        "#cc-main .cm",
    ),
    Covered(
        "klaro",
        """<script>window.klaroConfig = {mustConsent: true, acceptAll: true, lang: "en",
          translations: {en: {purposes: {analytics: "Analytics"}}},
          services: [{name: "matomo", title: "Matomo", purposes: ["analytics"]}]};</script>
        <script src="/npm/klaro/dist/klaro.js"></script>""",
        ".klaro .cookie-modal, .klaro .cookie-notice",
    ),
    Covered(
        "klaro (notice)",
        """<script>window.klaroConfig = {lang: "en", translations: {en: {purposes: {analytics: "Analytics"}}},
          services: [{name: "matomo", title: "Matomo", purposes: ["analytics"]}]};</script>
        <script src="/npm/klaro/dist/klaro.js"></script>""",
        ".klaro .cookie-modal, .klaro .cookie-notice",
    ),
    Covered(
        "tarteaucitronjs",
        """<script src="/npm/tarteaucitronjs/tarteaucitron.js"></script>
        <script>tarteaucitron.init({orientation: "middle", DenyAllCta: true, AcceptAllCta: true, highPrivacy: true,
          showIcon: true, useExternalCss: false, useExternalJs: false});
          (tarteaucitron.job = tarteaucitron.job || []).push("youtube");</script>
        <div class="youtube_player" videoID="x" width="100" height="100"></div>""",
        "#tarteaucitronAlertBig",
    ),
    Covered(
        "orejime",
        """<link rel="stylesheet" href="/npm/orejime/dist/orejime-standard.css">
        <script>window.orejimeConfig = {privacyPolicyUrl: "/privacy", purposes:
          [{id: "analytics", title: "Analytics", cookies: ["_ga"]}]};</script>
        <script src="/npm/orejime/dist/orejime-standard-en.js"></script>""",
        ".orejime-Banner, .orejime-Modal",
    ),
    Covered(
        "bootstrap-cookie-alert",
        """<link rel="stylesheet" href="/npm/bootstrap/dist/css/bootstrap.min.css">
        <link rel="stylesheet" href="/npm/bootstrap-cookie-alert/cookiealert.css">
        <div class="alert text-center cookiealert" role="alert"><b>Do you like cookies?</b> &#x1F36A; We use cookies to
          ensure you get the best experience on our website. <a href="https://cookiesandyou.com/">Learn more</a>
          <button type="button" class="btn btn-primary btn-sm acceptcookies">I agree</button></div>
        <script src="/npm/bootstrap-cookie-alert/cookiealert.js"></script>""",
        ".cookiealert",
    ),
    Covered(
        "cookie-notice",
        """<script src="/npm/cookie-notice/dist/cookie.notice.min.js"></script>
        <script>new cookieNoticeJS({learnMoreLinkEnabled: false});</script>""",
        "#cookieNotice",
    ),
    Covered(
        "cookie-though",
        """<script src="/npm/cookie-though/dist/lib.js"></script><script>CookieThough.init({policies: [
          {id: "essential", label: "Essential Cookies", description: "We need these.", category: "essential"},
          {id: "functional", label: "Functional Cookies", category: "functional", description: "For how the site works."}],
          essentialLabel: "Always on", permissionLabels: {accept: "Accept", acceptAll: "Accept all", decline: "Decline"},
          cookiePreferenceKey: "cookie-preferences",
          header: {title: "cookie though?", subTitle: "You're probably fed up with these banners...",
            description: "Everybody wants to show their best side - and so do we. That's why we use cookies to guarantee you a better experience."},
          cookiePolicy: {url: "/policy", label: "Read the full cookie declaration"}, customizeLabel: "Customize"});</script>""",
        ".cookie-though .ct-collapse, .cookie-though",
    ),
    Covered(
        "cookies-eu-banner",
        """<div id="cookies-eu-banner" style="display:none;position:fixed;bottom:0;left:0;right:0;background:#ddd;padding:20px">
        By continuing your visit to this site, you accept the use of cookies by Google Analytics to make visits statistics.
        <a href="/read-more">Read more</a><button id="cookies-eu-reject">Reject</button><button id="cookies-eu-accept">Accept</button></div>
        <script src="/npm/cookies-eu-banner/dist/cookies-eu-banner.global.js"></script>
        <script>for (const make of Object.values(CookiesEuBanner).filter(f => typeof f === "function").slice(0, 1)) make({});</script>""",
        "#cookies-eu-banner",
    ),
    Covered(
        "sweetalert2",
        """<script src="/npm/sweetalert2/dist/sweetalert2.all.min.js"></script>
        <script>Swal.fire({title: "Welcome!", text: "Have a look at our new collection.", icon: "info"});</script>""",
        ".swal2-popup",
    ),
    Covered(
        "sweetalert2 (newsletter)",
        """<script src="/npm/sweetalert2/dist/sweetalert2.all.min.js"></script>
        <script>Swal.fire({title: "Subscribe to our newsletter", input: "email", confirmButtonText: "Subscribe",
          showCancelButton: true, cancelButtonText: "No, thanks"});</script>""",
        ".swal2-popup",
    ),
    Covered(
        "micromodal",
        f"""<style>.modal {{display: none}} .modal.is-open {{display: block}}
        .modal__overlay {{position: fixed; inset: 0; background: rgba(0,0,0,.6); display: flex; justify-content: center; align-items: center}}
        .modal__container {{background: #fff; padding: 30px; max-width: 500px}}</style>
        <div class="modal micromodal-slide" id="modal-1" aria-hidden="true"><div class="modal__overlay" tabindex="-1" data-micromodal-close>
        <div class="modal__container" role="dialog" aria-modal="true" aria-labelledby="modal-1-title">
        <button class="modal__close" aria-label="Close modal" data-micromodal-close></button>{NEWS}</div></div></div>
        <script src="/npm/micromodal/dist/micromodal.min.js"></script><script>MicroModal.show("modal-1");</script>""",
        ".modal__container",
    ),
    Covered(
        "bootstrap",
        f"""<link rel="stylesheet" href="/npm/bootstrap/dist/css/bootstrap.min.css">
        <div class="modal fade" id="m" tabindex="-1"><div class="modal-dialog"><div class="modal-content"><div class="modal-header">
        <button type="button" class="btn-close" data-bs-dismiss="modal" aria-label="Close"></button></div><div class="modal-body">{NEWS}</div></div></div></div>
        <script src="/npm/bootstrap/dist/js/bootstrap.bundle.min.js"></script><script>new bootstrap.Modal("#m").show();</script>""",
        ".modal-dialog",
    ),
    Covered(
        "bootstrap (static notice)",
        """<link rel="stylesheet" href="/npm/bootstrap/dist/css/bootstrap.min.css">
        <div class="modal fade" id="m" tabindex="-1" data-bs-backdrop="static" data-bs-keyboard="false"><div class="modal-dialog"><div class="modal-content">
        <div class="modal-body"><h5>What's new</h5><p>We have redesigned our pages.</p></div><div class="modal-footer">
        <button type="button" class="btn btn-secondary" data-bs-dismiss="modal">Close</button></div></div></div></div>
        <script src="/npm/bootstrap/dist/js/bootstrap.bundle.min.js"></script><script>new bootstrap.Modal("#m").show();</script>""",
        ".modal-dialog",
    ),
    Covered(
        "a11y-dialog",
        f"""<style>.dialog-container, .dialog-overlay {{position: fixed; inset: 0}} .dialog-container {{z-index: 2; display: flex}}
        .dialog-container[aria-hidden=true] {{display: none}} .dialog-overlay {{background: rgba(43,46,56,.9)}}
        .dialog-content {{margin: auto; z-index: 2; position: relative; background: #fff; padding: 20px}}</style>
        <div id="d" class="dialog-container" aria-hidden="true"><div class="dialog-overlay" data-a11y-dialog-hide></div>
        <div class="dialog-content" role="document"><button type="button" data-a11y-dialog-hide aria-label="Close dialog">&times;</button>{NEWS}</div></div>
        <script src="/npm/a11y-dialog/dist/a11y-dialog.min.js"></script>
        <script>new A11yDialog(document.getElementById("d")).show();</script>""",
        ".dialog-content",
    ),
    Covered(
        "glightbox",
        """<link rel="stylesheet" href="/npm/glightbox/dist/css/glightbox.min.css"><script src="/npm/glightbox/dist/js/glightbox.min.js"></script>
        <script>GLightbox({elements: [{content: "<div style='padding:40px'><h2>Flash sale</h2><p>50% off, this week only</p></div>", width: 500, height: 300}]}).open();</script>""",
        ".glightbox-container",
    ),
    Covered(
        "tingle.js",
        f"""<link rel="stylesheet" href="/npm/tingle.js/dist/tingle.min.css"><script src="/npm/tingle.js/dist/tingle.min.js"></script>
        <script>const m = new tingle.modal(); m.setContent(`{NEWS}`); m.open();</script>""",
        ".tingle-modal-box",
    ),
    Covered(
        "jquery-modal",
        f"""{JQUERY}<link rel="stylesheet" href="/npm/jquery-modal/jquery.modal.min.css"><script src="/npm/jquery-modal/jquery.modal.min.js"></script>
        <div id="m" class="modal">{NEWS}</div><script>$("#m").modal();</script>""",
        "#m",
    ),
    Covered(
        "magnific-popup",
        f"""{JQUERY}<link rel="stylesheet" href="/npm/magnific-popup/dist/magnific-popup.css">
        <script src="/npm/magnific-popup/dist/jquery.magnific-popup.min.js"></script>
        <script>$.magnificPopup.open({{items: {{src: `<div style="background:#fff;max-width:500px;margin:auto;padding:30px;position:relative">{NEWS}</div>`, type: "inline"}}}});</script>""",
        ".mfp-content",
    ),
    Covered(
        "izimodal",
        f"""{JQUERY}<link rel="stylesheet" href="/npm/izimodal/css/iziModal.min.css"><script src="/npm/izimodal/js/iziModal.min.js"></script>
        <div id="m">{NEWS}</div><script>$("#m").iziModal({{title: "Hello", autoOpen: true}});</script>""",
        "#m",
    ),
    Covered(
        "remodal",
        f"""{JQUERY}<link rel="stylesheet" href="/npm/remodal/dist/remodal.css"><link rel="stylesheet" href="/npm/remodal/dist/remodal-default-theme.css">
        <script src="/npm/remodal/dist/remodal.min.js"></script><div class="remodal" data-remodal-id="m">
        <button data-remodal-action="close" class="remodal-close"></button>{NEWS}</div><script>$("[data-remodal-id=m]").remodal().open();</script>""",
        ".remodal",
    ),
    Covered(
        "ouibounce",
        f"""<style>#o {{display: none}} #o .underlay {{position: fixed; inset: 0; background: rgba(0,0,0,.6)}}
        #o .modal {{position: fixed; inset: 0; margin: auto; width: 600px; height: 400px; background: #f0f1f2; z-index: 1}}</style>
        <div id="o"><div class="underlay"></div><div class="modal"><div class="modal-title"><h3>Before you go</h3></div><div class="modal-body">{NEWS}</div>
        <div class="modal-footer"><p style="cursor:pointer" onclick="document.getElementById('o').style.display='none'">no thanks</p></div></div></div>
        <script src="/npm/ouibounce/build/ouibounce.min.js"></script>
        <script>ouibounce(document.getElementById("o"), {{aggressive: true, timer: 0}}).fire();</script>""",
        "#o .modal",
    ),
    Covered(
        "exit-intent-popup",
        """<script src="/npm/exit-intent-popup/js/bioep.min.js"></script>
        <script>bioEp.init({html: '<div><h2>Do not leave yet</h2><p>Sign up for our newsletter: 10% off.</p><input type=email></div>',
          width: 400, height: 300, delay: 0, showOnDelay: true});</script>""",
        "#bio_ep",
    ),
)

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Paper</title></head><body>
<h1>Paper</h1><p>News of the day.</p><button id="work" onclick="this.textContent = 'done'">Read on</button>
<div style="height: 1500px">…</div>{}</body></html>"""


def covered_pages(modules: Path) -> Mapping[str, Reply]:
    """A page for each of `COVERED` at `/covered/N`, with the files of the packages at `/npm/…`."""
    pages = {f"/covered/{n}": Reply(_PAGE.format(one.html)) for n, one in enumerate(COVERED)}
    for name in sorted({name for one in COVERED for name in re.findall(r'"/npm/([^"]+)"', one.html)}):
        for path in _with_neighbours(modules, name):
            pages[f"/npm/{path.relative_to(modules)}"] = Reply(path.read_bytes(), _type_of(path))
    return pages


def _with_neighbours(modules: Path, name: str) -> Iterator[Path]:
    """The file and what it loads by itself."""
    yield modules / name
    if name.startswith("tarteaucitronjs/"):
        for more in (
            "css/tarteaucitron.min.css",
            "css/tarteaucitron.css",
            "lang/tarteaucitron.en.min.js",
            "lang/tarteaucitron.en.js",
            "tarteaucitron.services.min.js",
            "tarteaucitron.services.js",
        ):
            yield modules / "tarteaucitronjs" / more


def _type_of(path: Path) -> str:
    return {".js": "text/javascript", ".css": "text/css"}.get(path.suffix, "application/octet-stream")

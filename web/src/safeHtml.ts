import DOMPurify from "dompurify";

/** What is allowed besides MathML: the elements of finished reports and of texts that are streamed. */
const TAGS = (
  "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img li mark ol p pre s section small span strong sup table tbody " +
  "td th thead tr ul wbr"
).split(" ");
const ATTRIBUTES = "alt class href id src title".split(" ");
/** Attributes whose values are no addresses: DOMPurify compares all others with `ADDRESS`. Those of MathML are the service's. */
const PLAIN_ATTRIBUTES = (
  "accent columnalign columnlines display displaystyle fence form linethickness mathvariant maxsize minsize movablelimits " +
  "rowlines scriptlevel start stretchy tabindex width"
).split(" ");
/** Addresses of the web and of mail, of figures at the service, and of places in the text. */
const ADDRESS = /^(?:(?:https?|mailto):|\/api\/runs\/|#)/i;

/**
 * HTML as safe elements that load and run nothing; links open in a new tab.
 *
 * Ids of the text become `data-id`, because a page shows several reports; links to them have `data-to`. Pictures have
 * `data-address`: they are fetched, because they need the API key.
 */
export function safeHtml(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, {
    USE_PROFILES: { mathMl: true },
    ADD_TAGS: TAGS,
    ADD_ATTR: [...ATTRIBUTES, ...PLAIN_ATTRIBUTES],
    ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
    ALLOWED_URI_REGEXP: ADDRESS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const one of fragment.querySelectorAll<HTMLElement>("[id]")) {
    one.dataset["id"] = one.id;
    one.removeAttribute("id");
  }
  for (const image of fragment.querySelectorAll("img")) {
    const address = image.getAttribute("src") ?? "";
    image.removeAttribute("src");
    if (address.startsWith("/api/runs/")) image.dataset["address"] = address;
  }
  for (const link of fragment.querySelectorAll("a")) {
    const target = link.getAttribute("href") ?? "";
    if (target.startsWith("#")) {
      link.dataset["to"] = target.slice(1);
      // A new tab shows this page, because the text has no address of its own.
      link.href = location.href;
    } else {
      link.target = "_blank";
      link.rel = "noopener noreferrer";
    }
  }
  return fragment;
}

"""The readers of e-mail: EML, and the MSG of Outlook. Attachments are listed, and read as far as they fit."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from typing import Any

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.bundles import Member, add_members
from maniple.reading.encoding import decode_text
from maniple.reading.html import read_fragment
from maniple.text import shorten

_FIELDS = ("From", "To", "Cc", "Date")
_FIELD_CHARACTERS = 1_000
_MAX_PARTS = 500


@dataclass(frozen=True, slots=True)
class _Mail:
    subject: str
    fields: Sequence[tuple[str, str]]
    text: str
    attachments: Iterable[Member]


def read_eml(body: bytes, url: str) -> MarkdownDocument:
    """Return a message with its sender, recipients, date, text and attachments.

    Raises:
        UnreadableDocument: it is damaged.
    """
    try:
        parsed = message_from_bytes(body, EmailMessage, policy=policy.default)
        mail = _parse(parsed, url)
    except (ValueError, LookupError, TypeError, AttributeError, IndexError) as error:
        raise UnreadableDocument("is a damaged e-mail") from error
    return _format(mail, url)


def _parse(message: EmailMessage, url: str) -> _Mail:
    fields = [(name, _field(message.get(name))) for name in _FIELDS]
    part = message.get_body(("plain", "html"))
    text = "" if part is None else _text_of_part(part, url)
    inside = set() if part is None else {id(one) for one in part.walk()}
    attachments = [
        Member(one.get_filename() or f"attachment {number}", _content_of(one))
        for number, one in enumerate(message.iter_attachments(), 1)
        if id(one) not in inside and number <= _MAX_PARTS
    ]
    return _Mail(_field(message.get("Subject")), fields, text, attachments)


def _field(value: Any) -> str:
    return shorten(str(value or ""), _FIELD_CHARACTERS)


def _text_of_part(part: MIMEPart, url: str) -> str:
    content = part.get_payload(decode=True)
    text = decode_text(content if isinstance(content, bytes) else b"", part.get_content_charset())
    return read_fragment(text, "", url).markdown if part.get_content_type() == "text/html" else text.strip()


def _content_of(part: MIMEPart) -> bytes:
    if part.get_content_maintype() == "message":  # one that was forwarded
        inner: Any = part.get_payload()
        return inner[0].as_bytes() if isinstance(inner, list) and inner else b""
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def read_msg(body: bytes, url: str) -> MarkdownDocument:
    """Return a message of Outlook as `read_eml` does.

    Raises:
        UnreadableDocument: it is damaged.
    """
    from oxmsg import Message

    try:
        message = Message.load(io.BytesIO(body))
        headers = {name.lower(): value for name, value in message.message_headers.items()}
        recipients = ", ".join(f"{one.name} <{one.email_address}>" for one in message.recipients)
        fields = [
            ("From", _field(message.sender)),
            ("To", _field(recipients)),
            ("Cc", _field(headers.get("cc"))),
            ("Date", _field(message.sent_date)),
        ]
        text = message.body or ""
        if not text and message.html_body:
            text = read_fragment(message.html_body, "", url).markdown
        attachments = [
            Member(one.file_name or f"attachment {number}", one.file_bytes or b"")
            for number, one in enumerate(message.attachments[:_MAX_PARTS], 1)
        ]
    except Exception as error:  # a damaged one raises various errors
        raise UnreadableDocument("is a damaged message of Outlook") from error
    return _format(_Mail(_field(message.subject), fields, text.strip(), attachments), url)


def _format(mail: _Mail, url: str) -> MarkdownDocument:
    head = "\n".join(f"{name}: {value}" for name, value in mail.fields if value)
    subject = f"# {mail.subject}" if mail.subject else ""
    document = MarkdownDocument(mail.subject, "\n\n".join(filter(None, (subject, head, mail.text))))
    return add_members(document, mail.attachments, "Attachment")

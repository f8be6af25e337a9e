"""Webhooks: signed messages about the ends and the waits of runs."""

from maniple.webhooks.sender import WebhookSender, open_webhook_sender
from maniple.webhooks.signing import derive_secret, load_webhook_key, sign_message
from maniple.webhooks.targets import InvalidWebhook, WebhookTargets, make_webhook

__all__ = [
    "InvalidWebhook",
    "WebhookSender",
    "WebhookTargets",
    "derive_secret",
    "load_webhook_key",
    "make_webhook",
    "open_webhook_sender",
    "sign_message",
]

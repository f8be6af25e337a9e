"""The signatures of webhooks."""

import stat
from dataclasses import replace

import pytest

from maniple.errors import StoreReadOnly
from maniple.webhooks import derive_secret, load_webhook_key, make_webhook, sign_message


def test_a_signature_is_that_of_the_specification():
    # The example of https://github.com/standard-webhooks/standard-webhooks.
    signature = sign_message(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_webhook_has_a_secret_of_its_own():
    webhook = make_webhook("", "https://e.test", (), 1.0)
    secret = derive_secret(b"k" * 32, webhook)
    assert secret == derive_secret(b"k" * 32, webhook)
    others = [
        derive_secret(b"l" * 32, webhook),
        derive_secret(b"k" * 32, replace(webhook, salt="s")),
        derive_secret(b"k" * 32, make_webhook("", "https://e.test", (), 1.0)),
    ]
    assert len({secret, *others}) == 4


def test_the_key_is_made_once_for_its_owner_alone(tmp_path):
    key = load_webhook_key(tmp_path / "data")
    assert load_webhook_key(tmp_path / "data") == key and len(key) == 32
    [file] = (tmp_path / "data").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"")
    with pytest.raises(StoreReadOnly, match="damaged"):
        load_webhook_key(tmp_path / "data")

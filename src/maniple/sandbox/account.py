"""Who sandboxed code is on the host.

An ordinary user's sandbox runs as that user, who is nobody special. Root's must not: the kernel does
not apply the process limit to host root, and a hole in the sandbox would lead straight to root. So
root gives workspaces, and the sandbox itself, to a user id that no account has.
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int


# Below 65534 so that a container that maps 65536 ids has it, and in the range that systemd's and
# Debian's tables both leave unused.
UNPRIVILEGED = Account(65533, 65533)


def sandbox_account() -> Account | None:
    """The account to change to, or None when the server's own user does."""
    return UNPRIVILEGED if os.geteuid() == 0 else None


def give_away(target: Path | int) -> None:
    """Let sandboxed code own a file or directory, named or open, that the host made for it."""
    account = sandbox_account()
    if account is None:
        return
    if isinstance(target, int):
        os.fchown(target, account.uid, account.gid)
    else:
        os.chown(target, account.uid, account.gid, follow_symlinks=False)

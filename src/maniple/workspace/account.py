"""The user account that workspaces, and the code that works in them, belong to.

A server of an ordinary user runs sandboxes as that user. A server of root does not: the kernel does not apply
the process limit to root, and an escape would have root's rights. Such a server gives workspaces, and the
sandbox itself, to a user id that no account has.
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HostAccount:
    uid: int
    gid: int


# Below 65534 so that a container that maps 65536 ids has it, and in the range that systemd's and Debian's
# tables both leave unused.
UNPRIVILEGED = HostAccount(65533, 65533)


def find_sandbox_account() -> HostAccount | None:
    """Return the account for sandboxed code, or None where it runs as the server's own user."""
    return UNPRIVILEGED if os.geteuid() == 0 else None


def give_away(target: Path | int) -> None:
    """Make sandboxed code the owner of a file or directory, given by path or descriptor."""
    account = find_sandbox_account()
    if account is None:
        return
    if isinstance(target, int):
        os.fchown(target, account.uid, account.gid)
    else:
        os.chown(target, account.uid, account.gid, follow_symlinks=False)

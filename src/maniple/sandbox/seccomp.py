"""The system-call filter of the sandbox, as classic BPF (seccomp(2), linux/seccomp.h).

Namespaces do not cover everything: AF_VSOCK reaches a hypervisor past the network namespace, nested
user namespaces and io_uring widen the kernel's surface, the keyring is shared, and memory files and
System V segments escape the memory limit. The program is written out here: it is 56 instructions long,
and the Python bindings of libseccomp, last released in 2021, would need that library at run time.
"""

import errno
import platform
import socket
import struct

from maniple.errors import SandboxError

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; little-endian only

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
_NEW_NAMESPACE = 0x7E020000
_X32_CALLS = 0x40000000
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)

# machine: (AUDIT_ARCH_*, numbers from asm/unistd.h)
_TABLES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {"socket": 41, "socketpair": 53, "clone": 56, "unshare": 272, "setns": 308}
        | {"add_key": 248, "request_key": 249, "keyctl": 250, "shmget": 29, "memfd_create": 319}
        | {"bpf": 321, "userfaultfd": 323, "perf_event_open": 298},
    ),
    "aarch64": (
        0xC00000B7,
        {"socket": 198, "socketpair": 199, "clone": 220, "unshare": 97, "setns": 268}
        | {"add_key": 217, "request_key": 218, "keyctl": 219, "shmget": 194, "memfd_create": 279}
        | {"bpf": 280, "userfaultfd": 282, "perf_event_open": 241},
    ),
}
# io_uring_setup, io_uring_enter, io_uring_register, memfd_secret; and clone3, whose flags lie behind a
# pointer that a filter cannot follow: glibc falls back to clone. These have one number everywhere.
_ABSENT = (425, 426, 427, 447, 435)
_REFUSED = (
    *("unshare", "setns", "add_key", "request_key", "keyctl", "shmget"),
    *("bpf", "userfaultfd", "perf_event_open"),
)


def filter_program() -> bytes:
    """The filter for this machine, as `bwrap --seccomp` reads it; raises `SandboxError` if there is none."""
    machine = platform.machine()
    if machine not in _TABLES:
        raise SandboxError(f"The sandbox has no system-call filter for {machine} machines yet.")
    architecture, numbers = _TABLES[machine]
    return b"".join(
        [
            _instruction(_LOAD, _ARCHITECTURE),
            _instruction(_EQUAL, architecture, if_true=1),
            _fail(errno.ENOSYS),
            _instruction(_LOAD, _NUMBER),
            _instruction(_AT_LEAST, _X32_CALLS, if_false=1),
            _fail(errno.ENOSYS),
            *(_when(number, errno.ENOSYS) for number in (*_ABSENT, numbers["memfd_create"])),
            *(_when(numbers[name], errno.EPERM) for name in _REFUSED),
            _no_new_namespaces(numbers["clone"]),
            *(_known_families(numbers[name]) for name in ("socket", "socketpair")),
            _instruction(_RETURN, _ALLOW),
        ]
    )


def _instruction(code: int, operand: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """One `struct sock_filter`; the jumps count the instructions to skip."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _fail(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def _when(number: int, error: int) -> bytes:
    return _instruction(_EQUAL, number, if_false=1) + _fail(error)


def _no_new_namespaces(clone: int) -> bytes:
    return (
        _instruction(_EQUAL, clone, if_false=4)
        + _instruction(_LOAD, _FIRST_ARGUMENT)
        + _instruction(_ANY_BIT, _NEW_NAMESPACE, if_false=1)
        + _fail(errno.EPERM)
        + _instruction(_RETURN, _ALLOW)
    )


def _known_families(call: int) -> bytes:
    checks = [
        _instruction(_EQUAL, family, if_true=len(_FAMILIES) - at) for at, family in enumerate(_FAMILIES)
    ]
    return (
        _instruction(_EQUAL, call, if_false=len(checks) + 3)
        + _instruction(_LOAD, _FIRST_ARGUMENT)
        + b"".join(checks)
        + _fail(errno.EAFNOSUPPORT)
        + _instruction(_RETURN, _ALLOW)
    )

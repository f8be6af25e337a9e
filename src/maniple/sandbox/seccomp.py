"""The system-call filter of the sandbox, as classic BPF (seccomp(2), linux/seccomp.h).

Namespaces do not cover everything: AF_VSOCK reaches a hypervisor past the network namespace, nested
user namespaces and io_uring widen the kernel's surface, the keyring is shared, memory files and System V
objects escape the memory limit, and blocks that are reserved fill a disk faster than anybody looks. The
program is written out here: its parts are few, and the Python bindings of libseccomp, last released in
2021, would need that library at run time.
"""

import errno
import os
import platform
import socket
import stat
import struct
from collections.abc import Iterator

from maniple.errors import SandboxError
from maniple.sandbox import syscalls

_LOAD, _RETURN = 0x20, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Offsets in struct seccomp_data; of an argument, the lower half on a little-endian machine.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _ARGUMENT_BYTES = 0, 4, 16, 8

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
_NEW_NAMESPACE = 0x7E020000
_X32_CALLS = 0x40000000
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
# They type into a terminal as if its user did.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# Other ways to fallocate: FS_IOC_RESVSP, RESVSP64 and ZERO_RANGE; XFS_IOC_ALLOCSP and ALLOCSP64; and
# FS_IOC_FSSETXATTR, which can let XFS take gigabytes for a byte that is written.
_RESERVING = (0x40305828, 0x4030582A, 0x40305839, 0x4030580A, 0x40305824, 0x401C5820)
_QUERY = 0xFFFFFFFF
# Meaningless inside; on the host, whoever runs such a file becomes its owner.
_SET_ID = stat.S_ISUID | stat.S_ISGID
_MAKES_A_FILE = os.O_CREAT | (os.O_TMPFILE & ~os.O_DIRECTORY)


def filter_program(machine: str | None = None) -> bytes:
    """The filter as `bwrap --seccomp` reads it, for this machine if none is named.

    Raises `SandboxError` if there is none.
    """
    machine = machine or platform.machine()
    if machine not in syscalls.MACHINES:
        raise SandboxError(f"The sandbox has no system-call filter for {machine} machines yet.")
    return b"".join(
        [
            _load(_ARCHITECTURE),
            _jump(_EQUAL, syscalls.MACHINES[machine], if_true=1),
            _fail(errno.ENOSYS),
            _load(_NUMBER),
            _jump(_AT_LEAST, _X32_CALLS, if_false=1),
            _fail(errno.ENOSYS),
            *_rules(list(syscalls.MACHINES).index(machine)),
            _instruction(_RETURN, _ALLOW),
        ]
    )


def _rules(machine: int) -> Iterator[bytes]:
    """Instructions that end in an answer, or fall through when they are about another call."""
    for numbers, error in (
        (syscalls.ABSENT, errno.ENOSYS),
        (syscalls.REFUSED, errno.EPERM),
        (syscalls.UNSUPPORTED, errno.EOPNOTSUPP),
    ):
        yield from (_on(number[machine], _fail(error)) for number in numbers.values())
    yield _on(syscalls.CLONE[machine], _unless(0, _ANY_BIT, [_NEW_NAMESPACE]))
    yield _on(syscalls.PERSONALITY[machine], _only(0, [_QUERY], errno.EPERM))
    yield _on(syscalls.IOCTL[machine], _unless(1, _EQUAL, [_TIOCSTI, _TIOCLINUX, *_RESERVING]))
    for number in syscalls.SOCKETS.values():
        yield _on(number[machine], _only(0, _FAMILIES, errno.EAFNOSUPPORT))
    for number, mode in syscalls.MODES.values():
        yield _on(number[machine], _unless(mode, _ANY_BIT, [_SET_ID]))
    for number, flags in syscalls.OPENS.values():
        creates = _load_argument(flags) + _jump(_ANY_BIT, _MAKES_A_FILE, if_true=1) + _allow()
        yield _on(number[machine], creates + _unless(flags + 1, _ANY_BIT, [_SET_ID]))


def _on(number: int | None, answer: bytes) -> bytes:
    """`answer` to the call of this number."""
    if number is None:
        return b""
    return _jump(_EQUAL, number, if_false=len(answer) // len(_allow())) + answer


def _unless(argument: int, test: int, operands: list[int]) -> bytes:
    """Refuse the call when the argument passes one of the tests."""
    tests = [_jump(test, operand, if_true=len(operands) - at) for at, operand in enumerate(operands)]
    return _load_argument(argument) + b"".join(tests) + _allow() + _fail(errno.EPERM)


def _only(argument: int, values: tuple[int, ...] | list[int], error: int) -> bytes:
    """Allow the call with one of these values."""
    tests = [_jump(_EQUAL, value, if_true=len(values) - at) for at, value in enumerate(values)]
    return _load_argument(argument) + b"".join(tests) + _fail(error) + _allow()


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _load_argument(index: int) -> bytes:
    return _load(_FIRST_ARGUMENT + index * _ARGUMENT_BYTES)


def _allow() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _fail(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def _jump(test: int, operand: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """Skip so many instructions."""
    return _instruction(test, operand, if_true, if_false)


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One `struct sock_filter`."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)

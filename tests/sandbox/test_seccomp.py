"""The filter's verdicts on both machines, by a reading of its instructions as the kernel reads them."""

import errno
import os
import socket
import struct

import pytest

from maniple.errors import SandboxError
from maniple.sandbox.isolation import (
    ABSENT,
    CLONE,
    IOCTL,
    MACHINES,
    MODES,
    OPENS,
    PERSONALITY,
    REFUSED,
    SET_OPTION,
    SOCKETS,
    SPLICES,
    UNSUPPORTED,
    build_seccomp_filter,
)

ALLOWED = 0x7FFF0000
IGNORED = 0x00050000
NAMES = list(MACHINES)


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """0 for a call that is let through, else its error; -1 for one that does nothing and succeeds."""
    told = MACHINES[machine] if architecture is None else architecture
    data = struct.pack("=IIQ6Q", number, told, 0, *arguments, *[0] * (6 - len(arguments)))
    program = list(struct.iter_unpack("=HBBI", build_seccomp_filter(machine)))
    value, at = 0, 0
    while at < len(program):
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x06:
            return -1 if operand == IGNORED else 0 if operand == ALLOWED else operand & 0xFFFF
        else:
            passed = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            at += if_true if passed else if_false
    raise AssertionError("the program ran past its end")


@pytest.fixture(params=NAMES)
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def column(machine: str) -> int:
    return NAMES.index(machine)


def test_what_is_known_to_lead_out_is_listed() -> None:
    others = {"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"}
    views = {
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "unshare",
        "setns",
        "move_mount",
        "open_tree",
        "fsopen",
    }
    kernel = {"bpf", "userfaultfd", "perf_event_open", "kexec_load", "init_module", "open_by_handle_at"}
    uncounted = {"keyctl", "shmget", "semget", "msgget", "memfd_create", "memfd_secret"}
    unseen = {"clone3", "io_uring_setup", "openat2"}
    assert others | views | kernel | uncounted | unseen <= {*REFUSED, *ABSENT}
    assert {"fallocate", "file_setattr"} <= {*UNSUPPORTED}


def test_every_listed_call_is_refused(machine: str, column: int) -> None:
    for table, error in (
        (REFUSED, errno.EPERM),
        (ABSENT, errno.ENOSYS),
        (UNSUPPORTED, errno.EOPNOTSUPP),
        (SPLICES, errno.EINVAL),
    ):
        for name, numbers in table.items():
            number = numbers[column]
            assert number is None or verdict(machine, number) == error, name


def test_what_is_not_listed_is_let_through(machine: str, column: int) -> None:
    listed = {
        numbers[column]
        for numbers in (
            *REFUSED.values(),
            *ABSENT.values(),
            *UNSUPPORTED.values(),
            *SPLICES.values(),
            *SOCKETS.values(),
            PERSONALITY,
        )
    }
    refused = {number for number in range(480) if verdict(machine, number, 0, 0)}
    assert refused <= listed


def test_only_three_socket_families_are_left(machine: str, column: int) -> None:
    allowed = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}
    for numbers in SOCKETS.values():
        number = numbers[column]
        assert number is not None
        for family in range(64):
            assert verdict(machine, number, family) == (0 if family in allowed else errno.EAFNOSUPPORT)


def test_sockets_of_the_internet_are_of_tcp_and_udp(machine: str, column: int) -> None:
    number = SOCKETS["socket"][column]
    assert number is not None
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    mptcp, sctp, dccp = 262, 132, 33
    for family in (socket.AF_INET, socket.AF_INET6):
        for kind, protocols in ((socket.SOCK_STREAM, (0, 6)), (socket.SOCK_DGRAM, (0, 17))):
            for protocol in protocols:
                assert verdict(machine, number, family, kind | flags, protocol) == 0
        assert verdict(machine, number, family, socket.SOCK_STREAM, mptcp) == errno.EPROTONOSUPPORT
        assert verdict(machine, number, family, socket.SOCK_STREAM, sctp) == errno.EPROTONOSUPPORT
        assert verdict(machine, number, family, 6, dccp) == errno.EPROTONOSUPPORT
        assert verdict(machine, number, family, socket.SOCK_SEQPACKET | flags, 0) == errno.ESOCKTNOSUPPORT
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        assert verdict(machine, number, socket.AF_UNIX, kind | flags, 0) == 0


def test_no_socket_gets_a_larger_buffer(machine: str, column: int) -> None:
    number = SET_OPTION[column]
    assert number is not None
    of_socket = socket.SOL_SOCKET
    for size in (socket.SO_SNDBUF, socket.SO_RCVBUF, 1 << 32 | socket.SO_SNDBUF):
        assert verdict(machine, number, 3, of_socket, size) == -1
    forced_send, forced_receive, reserved, without_copy = 32, 33, 73, 60
    for option in (forced_send, forced_receive, reserved, without_copy):
        assert verdict(machine, number, 3, of_socket, option) == errno.EPERM
    for option in (socket.SO_REUSEADDR, socket.SO_KEEPALIVE, socket.SO_LINGER, socket.SO_BROADCAST):
        assert verdict(machine, number, 3, of_socket, option) == 0
    for level in (socket.IPPROTO_TCP, socket.IPPROTO_IP, socket.IPPROTO_IPV6):
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
            assert verdict(machine, number, 3, level, option) == 0


def test_a_clone_may_make_threads_and_processes_but_no_namespace(machine: str, column: int) -> None:
    clone = CLONE[column]
    assert clone is not None
    threads, child = 0x3D0F00, 17
    assert verdict(machine, clone, threads) == verdict(machine, clone, child) == 0
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, clone, bit | child) == errno.EPERM


def test_no_file_gets_the_bits_that_lend_its_owners_rights(machine: str, column: int) -> None:
    for name, (numbers, mode) in MODES.items():
        number = numbers[column]
        if number is not None:
            before = [0o7777] * mode
            assert verdict(machine, number, *before, 0o1777) == 0, name
            for bits in (0o4755, 0o2755):
                assert verdict(machine, number, *before, bits) == errno.EPERM, name
    for name, (numbers, flags) in OPENS.items():
        number = numbers[column]
        if number is not None:
            before = [0o7777] * flags
            # Without O_CREAT nobody reads the mode, and anything may stand there.
            assert verdict(machine, number, *before, os.O_RDWR, 0o4755) == 0, name
            assert verdict(machine, number, *before, os.O_CREAT, 0o755) == 0, name
            for making in (os.O_CREAT, os.O_TMPFILE):
                assert verdict(machine, number, *before, making, 0o4755) == errno.EPERM, name


def test_nothing_is_typed_into_a_terminal(machine: str, column: int) -> None:
    ioctl = IOCTL[column]
    assert ioctl is not None
    # The kernel reads 32 bits of the request, whatever stands above them.
    for request in (0x5412, 0x541C, 1 << 32 | 0x5412):
        assert verdict(machine, ioctl, 0, request) == errno.EPERM
    assert verdict(machine, ioctl, 0, 0x5401) == 0


def test_no_disk_is_reserved_by_a_detour(machine: str, column: int) -> None:
    ioctl = IOCTL[column]
    assert ioctl is not None
    flock, fsxattr = 48 << 16, 28 << 16  # the sizes of their arguments (linux/falloc.h, linux/fs.h, xfs_fs.h)
    for number in (10, 36, 40, 42, 57):
        assert verdict(machine, ioctl, 3, 1 << 30 | flock | ord("X") << 8 | number) == errno.EPERM
    assert verdict(machine, ioctl, 3, 1 << 30 | fsxattr | ord("X") << 8 | 32) == errno.EPERM
    asking = 2 << 30 | fsxattr | ord("X") << 8 | 31
    assert verdict(machine, ioctl, 3, asking) == 0


def test_a_personality_may_be_read_and_not_changed(machine: str, column: int) -> None:
    personality = PERSONALITY[column]
    assert personality is not None
    assert verdict(machine, personality, 0xFFFFFFFF) == 0
    assert verdict(machine, personality, 0x0040000) == errno.EPERM


def test_calls_in_another_machines_language_do_not_exist(machine: str) -> None:
    assert verdict(machine, 1, architecture=0x40000003) == errno.ENOSYS
    assert verdict(machine, 0x40000000 | 1) == errno.ENOSYS


def test_an_unknown_machine_has_no_filter_and_so_no_sandbox() -> None:
    with pytest.raises(SandboxError, match="s390x machines"):
        build_seccomp_filter("s390x")

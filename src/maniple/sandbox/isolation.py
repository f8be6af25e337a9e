"""Isolation with bubblewrap: mounts and namespaces, the network proxy, the system-call filter.

The network namespace of a sandbox is empty. With `network: allowlist`, a unix socket of the host's gateway,
one per session, is mounted inside, and `standalone/forwarder.py` serves it as a proxy on the sandbox's own
loopback, which programs find by the usual variables.

The system-call filter is classic BPF (seccomp(2), linux/seccomp.h). Namespaces do not cover everything:
AF_VSOCK reaches a hypervisor past the network namespace, nested user namespaces and io_uring widen the
kernel's surface, the keyring is shared, memory files, System V objects, large socket buffers and spliced
pages escape the memory limit, and reserved blocks fill a disk faster than the watchdog looks. The program is
written out here: it has few parts, and the Python bindings of libseccomp (last release 2021) would need that
library at run time.
"""

import errno
import os
import platform
import socket
import stat
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import (
    AllowedHosts,
    ConnectionLimits,
    EgressGateway,
    EgressRoute,
    GatewaySocket,
    open_gateway,
)
from maniple.errors import SandboxError
from maniple.sandbox.control_groups import ControlGroup
from maniple.sandbox.host import HostPrograms, find_python_prefixes, standalone_program
from maniple.sandbox.socket_memory import TCP_LIMITS
from maniple.workspace.account import find_sandbox_account

WORKSPACE = "/workspace"
"""The path of the workspace inside a sandbox."""
OWN_FILES = {
    "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
    "/etc/passwd": b"sandbox:x:1000:1000::/tmp:/bin/bash\n",
    "/etc/group": b"sandbox:x:1000:\n",
}
"""Replacements for files of the host that would reveal its users and its network."""

_STAGED = "/tmp/shown"
_SYSTEM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = (
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"),
)
_UNSHARED = (
    # --unshare-all alone would go on without a user namespace.
    *("--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
    *("--die-with-parent", "--new-session"),
)

BindMount = tuple[str, str]
"""A path on the host, and its path inside."""


@dataclass(frozen=True, slots=True)
class IsolationSpec:
    """The isolation of one sandbox: its writable `folder`, its variables and its other mounts."""

    folder: Path
    variables: Mapping[str, str]
    memory_mb: int
    read_only: tuple[BindMount, ...] = ()
    writable: tuple[BindMount, ...] = ()
    directories: tuple[str, ...] = ()
    """Created empty, in memory."""
    over_folder: tuple[BindMount, ...] = ()
    """Mounted read-only over what `folder` has."""
    is_proc_writable: bool = False
    group: ControlGroup | None = None
    """Where all its processes are, from the first one on."""


class Isolation:
    """Builds the command lines of sandboxes; the constructor blocks on disk."""

    def __init__(self, programs: HostPrograms) -> None:
        self._programs = programs
        self._system_mounts = tuple(_system_mounts())
        self._python = tuple(
            (str(prefix), str(prefix)) for prefix in find_python_prefixes(Path(programs.python))
        )

    def build_argv(self, spec: IsolationSpec) -> list[str]:
        """Return bwrap's command line, to which more options can be appended; it starts in the workspace."""
        programs = self._programs
        account = find_sandbox_account()
        argv = spec.group.enter(programs.sh) if spec.group is not None else []
        argv += [programs.nice, "-n", "10", programs.choom, "-n", "900", "--"]
        shown = [(one, "--ro-bind") for one in (*self._python, *spec.read_only)]
        shown += [(one, "--bind") for one in (*spec.writable, (str(spec.folder), WORKSPACE))]
        shown += [(one, "--ro-bind") for one in spec.over_folder]
        if account is not None:
            # In a process namespace of its own: bwrap as root has no capabilities and may not signal the
            # other user's processes when it dies, but the kernel ends a whole namespace.
            argv += [programs.bwrap, "--die-with-parent", "--unshare-pid", "--as-pid-1"]
            argv += ["--dev-bind", "/", "/", "--tmpfs", "/tmp"]
            for number, ((path, inner), how) in enumerate(shown):
                argv += ["--bind", path, f"{_STAGED}-{number}"]
                shown[number] = ((f"{_STAGED}-{number}", inner), how)
            argv += ["--", *self._init(), programs.setpriv, f"--reuid={account.uid}"]
            argv += [f"--regid={account.gid}", "--clear-groups", "--pdeathsig=keep", "--"]
        argv += [programs.bwrap, *_UNSHARED, *self._system_mounts, *_private_mounts(spec)]
        argv += [word for path, inner in TCP_LIMITS for word in ("--ro-bind-try", path, inner)]
        for name, value in spec.variables.items():
            argv += ["--setenv", name, value]
        for directory in spec.directories:
            argv += ["--dir", directory]
        for (path, inner), how in shown:
            argv += [how, path, inner]
        return [*argv, "--chdir", WORKSPACE]

    def _init(self) -> list[str]:
        """Return process 1 of the outer namespace; bwrap's own would be left to one that may not reap it."""
        return [self._programs.sh, "-c", '"$@"; exit $?', "init"]


def data_mounts(sources: Mapping[str, int]) -> list[str]:
    """Return options that mount the content of open files at their paths and then make / read-only."""
    mounts = [word for path, source in sources.items() for word in ("--ro-bind-data", str(source), path)]
    return [*mounts, "--remount-ro", "/"]


@contextmanager
def memory_file(content: bytes = b"") -> Iterator[FileIO]:
    """Yield an anonymous file in memory, positioned at its start."""
    with FileIO(os.memfd_create("maniple"), "r+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _private_mounts(spec: IsolationSpec) -> list[str]:
    # These use memory that no process's own limit counts.
    size = str(spec.memory_mb * 1024 * 1024 // 8)
    shared = ["--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    # Write access to /proc would give access to the worker's memory.
    processes = ["--proc", "/proc", *([] if spec.is_proc_writable else ["--remount-ro", "/proc"])]
    return [*processes, *shared, "--size", size, "--tmpfs", "/tmp"]


def _system_mounts() -> Iterator[str]:
    """Yield read-only mounts: /usr, the older paths beside it, and a few harmless files of /etc."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM_DIRECTORIES:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for path in _SYSTEM_FILES:
        yield from ("--ro-bind-try", path, path)


INNER_SOCKET = "/run/maniple/egress"
INNER_FORWARDER = "/run/maniple/forwarder.py"
PROXY_PORT = 3128
_PROXY = f"http://127.0.0.1:{PROXY_PORT}"
_CONNECTIONS_EACH = 16
_BYTES_EACH_WAY = 200_000_000
_CONNECTION_SECONDS = 600.0
_OWN_HOSTS = "localhost,127.0.0.1,::1"

# Public certificates of authorities, which programs need for TLS.
CERTIFICATES = ("/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted")


@dataclass(frozen=True, slots=True)
class EgressProxy:
    """The gateway on the host, and the settings by which code inside finds it."""

    gateway: EgressGateway

    async def open_socket(self) -> GatewaySocket:
        """Open a socket for one session, which closes it. Raises `OSError`."""
        return await self.gateway.open_socket()

    def command(self, sh: str, python: str) -> list[str]:
        """See `forward_command`."""
        return forward_command(sh, python)

    def variables(self) -> dict[str, str]:
        """Return the proxy variables for programs inside; curl reads only the lower-case `http_proxy`."""
        names = ("http_proxy", "https_proxy", "all_proxy")
        found = {spelled: _PROXY for name in names for spelled in (name, name.upper())}
        return {**found, "no_proxy": _OWN_HOSTS, "NO_PROXY": _OWN_HOSTS}


def forward_command(sh: str, python: str) -> list[str]:
    """Return a command that starts the forwarder and then executes the program that follows."""
    script = f'{python} -I -S "$0" {PROXY_PORT} {INNER_SOCKET} && exec "$@"'
    return [sh, "-c", script, INNER_FORWARDER]


def read_forwarder() -> bytes:
    """Return the text of the forwarder."""
    return standalone_program("forwarder.py").read_bytes()


@asynccontextmanager
async def open_egress_proxy(
    settings: SandboxSettings, egress: EgressRoute | None
) -> AsyncIterator[EgressProxy | None]:
    """Open the proxy of all sessions; yield None without a network or with another backend.

    Raises `SandboxError` when the proxy cannot be opened.
    """
    if settings.backend != "bubblewrap" or settings.network == "none" or egress is None:
        yield None
        return
    limits = ConnectionLimits(_CONNECTIONS_EACH, _BYTES_EACH_WAY, seconds=_CONNECTION_SECONDS)
    async with AsyncExitStack() as stack:
        try:
            allowed = AllowedHosts(settings.allow_hosts)
            gateway = await stack.enter_async_context(open_gateway(allowed, egress, limits))
            # Check now, and not at each session's start, that sockets can be created.
            (await gateway.open_socket()).close()
        except OSError as error:
            message = f"The sandbox's network proxy cannot be opened: {error}. Check TMPDIR."
            raise SandboxError(message) from error
        yield EgressProxy(gateway)


MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* by `uname -m`; the numbers of a call have this order (asm/unistd.h of Linux 6.18), or None."""

Numbers = tuple[int | None, int | None]

REFUSED: dict[str, Numbers] = {
    # Access to other processes: memory, descriptors, kernel objects.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # New namespaces and mounts, which widen the reachable part of the kernel.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # The machine itself.
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    # A large kernel surface behind one call.
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    # Objects shared across namespaces, or memory that no limit counts.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
}
"""Answered with EPERM."""

ABSENT: dict[str, Numbers] = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    # A filter cannot follow the pointers in their arguments; the C library works without them.
    "clone3": (435, 435),
    "openat2": (437, 437),
}
"""Answered with ENOSYS, as an older kernel would: programs then use a fallback."""

UNSUPPORTED: dict[str, Numbers] = {
    # They reserve gigabytes of disk between two checks of the watchdog.
    "fallocate": (285, 47),
    "file_setattr": (469, 469),
}
"""Answered with EOPNOTSUPP, as by a file system without it: the C library then writes instead."""

SPLICES: dict[str, Numbers] = {
    # One byte of a page that waits in a pipe or socket keeps the whole page, and counts as one byte.
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
    "sendfile": (40, 71),
}
"""Answered with EINVAL, as for a kind of file that cannot do it: programs then copy instead."""

MODES: dict[str, tuple[Numbers, int]] = {
    "chmod": ((90, None), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
    "mknod": ((133, None), 1),
    "mknodat": ((259, 33), 2),
    "creat": ((85, None), 1),
}
"""Calls that set a file's mode, and which argument it is, counted from 0."""

OPENS: dict[str, tuple[Numbers, int]] = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
"""Calls that set a mode only when their flags make a file, and which argument these are; the mode is next."""

SOCKETS: dict[str, Numbers] = {"socket": (41, 198), "socketpair": (53, 199)}
SET_OPTION: Numbers = (54, 208)
CLONE: Numbers = (56, 220)
IOCTL: Numbers = (16, 29)
PERSONALITY: Numbers = (135, 92)


_LOAD, _RETURN = 0x20, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Offsets in struct seccomp_data; of an argument, the lower half on a little-endian machine.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _ARGUMENT_BYTES = 0, 4, 16, 8

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
_NEW_NAMESPACE = 0x7E020000
_X32_CALLS = 0x40000000
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
# Others, such as MPTCP and SCTP, have buffers that the watchdog's estimate does not know.
_PROTOCOLS = (0, 1, socket.IPPROTO_TCP, socket.IPPROTO_UDP, socket.IPPROTO_ICMPV6)
# A bit of SOCK_SEQPACKET, which is SCTP for a family of the internet, and of no other kind that code needs.
_SEQUENCED = 0x4
# The kernel itself reduces a size to its maximum without a word, so programs expect to get another one.
_BUFFER_SIZES = (socket.SO_SNDBUF, socket.SO_RCVBUF)
# SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_RESERVE_MEM; SO_ZEROCOPY keeps pages that are not in use elsewhere.
_RESERVING_OPTIONS = (32, 33, 73, 60)
# They insert input into a terminal as if its user typed it.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# Other ways to fallocate: FS_IOC_RESVSP, RESVSP64 and ZERO_RANGE; XFS_IOC_ALLOCSP and ALLOCSP64; and
# FS_IOC_FSSETXATTR, which can let XFS take gigabytes for a byte that is written.
_RESERVING = (0x40305828, 0x4030582A, 0x40305839, 0x4030580A, 0x40305824, 0x401C5820)
_QUERY = 0xFFFFFFFF
# Meaningless inside; on the host, such a file runs with its owner's rights.
_SET_ID = stat.S_ISUID | stat.S_ISGID
_MAKES_A_FILE = os.O_CREAT | (os.O_TMPFILE & ~os.O_DIRECTORY)


def build_seccomp_filter(machine: str | None = None) -> bytes:
    """Return the filter in the format of `bwrap --seccomp`, by default for this machine.

    Raises `SandboxError` for an unsupported machine.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise SandboxError(f"The sandbox has no system-call filter for {machine} machines yet.")
    return b"".join(
        [
            _load(_ARCHITECTURE),
            _jump(_EQUAL, MACHINES[machine], if_true=1),
            _fail(errno.ENOSYS),
            _load(_NUMBER),
            _jump(_AT_LEAST, _X32_CALLS, if_false=1),
            _fail(errno.ENOSYS),
            *_rules(list(MACHINES).index(machine)),
            _instruction(_RETURN, _ALLOW),
        ]
    )


def _rules(machine: int) -> Iterator[bytes]:
    """Yield blocks of instructions; each returns a verdict for its call or falls through for others."""
    for numbers, error in (
        (ABSENT, errno.ENOSYS),
        (REFUSED, errno.EPERM),
        (UNSUPPORTED, errno.EOPNOTSUPP),
        (SPLICES, errno.EINVAL),
    ):
        yield from (_on(number[machine], _fail(error)) for number in numbers.values())
    yield _on(CLONE[machine], _unless(0, _ANY_BIT, [_NEW_NAMESPACE]))
    yield _on(PERSONALITY[machine], _only(0, [_QUERY], errno.EPERM))
    yield _on(IOCTL[machine], _unless(1, _EQUAL, [_TIOCSTI, _TIOCLINUX, *_RESERVING]))
    for number in SOCKETS.values():
        yield _on(number[machine], _known_sockets())
    yield _on(SET_OPTION[machine], _small_buffers())
    for number, mode in MODES.values():
        yield _on(number[machine], _unless(mode, _ANY_BIT, [_SET_ID]))
    for number, flags in OPENS.values():
        creates = _load_argument(flags) + _jump(_ANY_BIT, _MAKES_A_FILE, if_true=1) + _allow()
        yield _on(number[machine], creates + _unless(flags + 1, _ANY_BIT, [_SET_ID]))


def _on(number: int | None, answer: bytes) -> bytes:
    """Return instructions that run `answer` for the call of this number."""
    if number is None:
        return b""
    return _jump(_EQUAL, number, if_false=len(answer) // len(_allow())) + answer


def _unless(argument: int, test: int, operands: list[int]) -> bytes:
    """Refuse the call when the argument passes one of the tests."""
    tests = [_jump(test, operand, if_true=len(operands) - at) for at, operand in enumerate(operands)]
    return _load_argument(argument) + b"".join(tests) + _allow() + _fail(errno.EPERM)


def _only(argument: int, values: tuple[int, ...] | list[int], error: int) -> bytes:
    """Allow the call with one of these values."""
    return _require(argument, values, error) + _allow()


def _require(argument: int, values: tuple[int, ...] | list[int], error: int) -> bytes:
    """Go on with one of these values; fail for others."""
    tests = [_jump(_EQUAL, value, if_true=len(values) - at) for at, value in enumerate(values)]
    return _load_argument(argument) + b"".join(tests) + _fail(error)


def _known_sockets() -> bytes:
    """Allow the sockets of the known families that have the usual protocols."""
    checked = _require(0, _FAMILIES, errno.EAFNOSUPPORT) + _require(2, _PROTOCOLS, errno.EPROTONOSUPPORT)
    local = _load_argument(0) + _jump(_EQUAL, socket.AF_UNIX, if_false=1) + _allow()
    sequenced = _load_argument(1) + _jump(_ANY_BIT, _SEQUENCED, if_false=1) + _fail(errno.ESOCKTNOSUPPORT)
    return checked + local + sequenced + _allow()


def _small_buffers() -> bytes:
    """Ignore new sizes of a socket's buffers, refuse memory that is reserved for it; allow other options."""
    other_level = _load_argument(1) + _jump(_EQUAL, socket.SOL_SOCKET, if_true=1) + _allow()
    sizes = [_jump(_EQUAL, option, if_false=1) + _instruction(_RETURN, _ERRNO) for option in _BUFFER_SIZES]
    return other_level + _load_argument(2) + b"".join(sizes) + _unless(2, _EQUAL, [*_RESERVING_OPTIONS])


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _load_argument(index: int) -> bytes:
    return _load(_FIRST_ARGUMENT + index * _ARGUMENT_BYTES)


def _allow() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _fail(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def _jump(test: int, operand: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return a conditional jump over that many instructions."""
    return _instruction(test, operand, if_true, if_false)


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one `struct sock_filter`."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)

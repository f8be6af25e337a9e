"""System calls that sandboxed code has no use for, with their numbers (asm/unistd.h of Linux 6.18)."""

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* by `uname -m`; a call's numbers stand in this order, None where a machine has it not."""

Numbers = tuple[int | None, int | None]

REFUSED: dict[str, Numbers] = {
    # Other processes: their memory, their descriptors, their places in the kernel.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # New views of the system, which widen what of the kernel can be reached.
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
    # Much of the kernel behind one door.
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    # Shared beyond namespaces, or memory that no limit counts.
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
    # Their arguments lie behind pointers that a filter cannot follow; the C library does without them.
    "clone3": (435, 435),
    "openat2": (437, 437),
}
"""Answered with ENOSYS, as an older kernel would: programs then take another way."""

UNSUPPORTED: dict[str, Numbers] = {
    # They take gigabytes of disk in an instant, between two looks of the watchdog.
    "fallocate": (285, 47),
    "file_setattr": (469, 469),
}
"""Answered with EOPNOTSUPP, as a file system that has it not would: the C library then writes instead."""

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
CLONE: Numbers = (56, 220)
IOCTL: Numbers = (16, 29)
PERSONALITY: Numbers = (135, 92)

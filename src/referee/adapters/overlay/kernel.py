"""The few system calls that Python 3.11 does not offer. Standard library only.

Numbers are those of Linux's user interface headers; they are equal on every architecture except where a
table says otherwise.
"""

from __future__ import annotations

import ctypes
import functools
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_SYS_MOUNT_SETATTR = 442
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_LAST_CAPABILITY = 63

#: What installing packages needs, by number: chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap,
#: net_bind_service, net_raw, sys_chroot, audit_write, setfcap.
KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29, 31})


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the namespaces that ``flags`` name for new ones."""
    _check(_libc().unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str | None = None) -> None:
    """Mount ``source`` at ``target``, or with ``MS_BIND`` show it there too."""
    result = _libc().mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )
    _check(result, f"mount {kind or 'bind'} at {target}")


def make_read_only(target: str) -> None:
    """Make the mount at ``target`` and all below it read-only, other flags untouched."""
    attributes = _MountAttr(attr_set=_MOUNT_ATTR_RDONLY)
    result = _libc().syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        target.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _check(result, f"make {target} read-only")


def enter_root(new_root: str) -> None:
    """Make ``new_root`` (a mount point) the root and let go of the old one."""
    os.chdir(new_root)
    _check(_libc().pivot_root(b".", b"."), "pivot_root")
    _check(_libc().umount2(b".", ctypes.c_int(_MNT_DETACH)), "detach the old root")
    os.chdir("/")


def set_hostname(name: str) -> None:
    """Name the machine within its UTS namespace."""
    _check(_libc().sethostname(name.encode(), ctypes.c_size_t(len(name.encode()))), "sethostname")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def give_up_privileges() -> None:
    """Drop every capability that installing packages does not need, for good, and gain none by set-uid files."""
    for number in range(_LAST_CAPABILITY + 1):
        # The kernel answers EINVAL beyond its last capability.
        if number not in KEPT_CAPABILITIES and _libc().prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")

"""One secret of the workspace, from which keys are derived that a later start must know again.

It stands in ``keys/secret`` (mode 0600), enters no machine, no record and no page.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import platform
import secrets
from pathlib import Path

_BYTES = 32


def workspace_secret(directory: Path) -> bytes:
    """The secret of the workspace whose ``keys/`` is ``directory``; made now where there is none.

    Raises:
        OSError: it can neither be read nor made.
        ValueError: the file is damaged.
    """
    path = directory / "secret"
    with contextlib.suppress(FileNotFoundError):
        return _checked(path)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = directory / f".secret-{os.getpid()}-{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_BYTES).encode())
            file.flush()
            os.fsync(file.fileno())
        # A link, no rename: of two starts at once the first one's secret stands, and both use it.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()
    return _checked(path)


def where_it_stands(directory: Path) -> str:
    """What tells a workspace from a copy of it that took its secret along: host and place of the secret's file.

    A workspace that is moved on its file system keeps it.

    Raises:
        OSError: the secret is not there.
    """
    return f"{platform.node()}\n{(directory / 'secret').stat().st_ino}"


def derive(secret: bytes, purpose: str, run: str = "") -> str:
    """64 hexadecimal digits that belong to a purpose and a run and tell nothing of the secret."""
    return hmac.new(secret, f"{purpose}\n{run}".encode(), hashlib.sha256).hexdigest()


def _checked(path: Path) -> bytes:
    value = bytes.fromhex(path.read_text(encoding="ascii").strip())
    if len(value) != _BYTES:
        raise ValueError(f"{path} is damaged: it must hold {2 * _BYTES} hexadecimal digits")
    return value

"""Regular files, opened for reading where no link is followed: what is read lies where its name says.

Here, below the adapters, because the store, the catalogue and the command line read what anybody may have put there.
"""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str | os.PathLike[str], *, inside: int | None = None) -> int:
    """The descriptor of a regular file, opened for reading.

    A pipe that nobody writes to is refused at once instead of being waited for.

    Args:
        path: where it lies; its last part may be no symbolic link.
        inside: the open directory that ``path`` is relative to; None for the working directory.

    Raises:
        OSError: it is not there, cannot be read, or is a link, a directory, a pipe or a device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor

"""Locks of open files, which the system releases when a process ends."""

import sys


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Try to get the lock, which is held until the file is closed; return whether it succeeded.

    Several processes can have a shared lock together (on Windows it does nothing), but not with an exclusive one.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            if not shared:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

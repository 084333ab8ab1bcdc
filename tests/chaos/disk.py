"""A disk under a store that can be full: a small file system of its own where we may mount one, else a limit to the size of
the store's files.
"""
import contextlib
import ctypes
import os
import pathlib
import resource
import subprocess
import threading

MOUNTED = 'a tmpfs of its own, filled up (ENOSPC)'
LIMITED = 'a limit to the size of its files (RLIMIT_FSIZE: EFBIG)'
CLONE_NEWNS = 0x20000
SLACK = 4096  # bytes left on a disk that is full


def own_mounts():
    """From now on mounts of this process and its children are theirs alone, and go with them. False: not permitted. To be
    called before the first thread starts."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(['mount', '--make-rprivate', '/'], stderr=subprocess.DEVNULL, check=False).returncode == 0


class MountedDisk:
    how = MOUNTED

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.ballast = self.folder / 'ballast'

    def fill(self):
        free = os.statvfs(self.folder)
        size = free.f_bavail * free.f_frsize - SLACK
        with contextlib.suppress(OSError), open(self.ballast, 'wb') as file:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))

    def free(self):
        self.ballast.unlink(missing_ok=True)

    def close(self):
        subprocess.run(['umount', '--lazy', str(self.folder)], stderr=subprocess.DEVNULL, check=False)


class LimitedDisk:
    """The server's wrapper ignores SIGXFSZ: a write beyond the limit fails. A server that is started while the disk is full
    gets the limit at once."""
    how = LIMITED

    def __init__(self, folder, pid):
        self.folder, self.pid = pathlib.Path(folder), pid
        self.is_full, self.is_freed = threading.Event(), threading.Event()
        self.keeper = None

    def limit(self, size):
        pid = self.pid()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def largest(self):
        return max((path.stat().st_size for path in self.folder.rglob('*.aof')), default=0)

    def fill(self):
        size = self.largest()
        self.is_full.set()

        def keep():
            while self.is_full.is_set():
                self.limit(size)
                self.is_freed.wait(0.02)
            self.limit(resource.RLIM_INFINITY)
        self.is_freed.clear()
        self.keeper = threading.Thread(target=keep, daemon=True)
        self.keeper.start()

    def free(self):
        self.is_full.clear()
        self.is_freed.set()
        if self.keeper:
            self.keeper.join()

    def close(self):
        self.free()


def mounted_disk(folder, size='1g'):
    """None where we may not mount. size: a limit, not what it takes."""
    command = ['mount', '-t', 'tmpfs', '-o', f'size={size},mode=0700', 'outboxd-chaos', str(folder)]
    if not can_mount or subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return None
    return MountedDisk(folder)


def limited_disk(folder, pid):
    return LimitedDisk(folder, pid)


can_mount = False  # run sets it

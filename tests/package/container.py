"""A real systemd with this very machine's packages, in a container that forgets everything: an overlay over / in memory,
its own processes, network and host name (systemd-nspawn). What is done to it is never done to this machine.

Needs root, and a kernel that lets root mount and make namespaces: where it can't be had, Unavailable says why.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

SLOW = float(os.environ.get('OUTBOXD_SLOW', '1'))
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = '/srv/outboxd-tree'  # the source tree in there, read-only

# In a mount namespace of its own, so that all mounts end with it; in control groups of its own, which nspawn divides.
START = '''
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 outboxd-test "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
rm -f "$1/root/usr/sbin/policy-rc.d" "$1/root/var/lib/man-db/auto-update"
for group in $3; do
    mkdir -p "$group"
    echo $$ >"$group/cgroup.procs"
done
exec systemd-nspawn --quiet --directory="$1/root" --boot --register=no --keep-unit --settings=no --private-network \
    --link-journal=no --resolv-conf=off --timezone=off --machine="$2" --console=pipe --bind-ro="$4:$5" \
    systemd.unit=basic.target systemd.mask=systemd-journal-flush.service systemd.mask=systemd-update-utmp.service \
    systemd.mask=dev-hugepages.mount systemd.mask=systemd-sysctl.service systemd.mask=timers.target
'''


class Unavailable(Exception):
    pass


class Container:
    def __init__(self):
        if os.geteuid() != 0:
            raise Unavailable('it takes root')
        for name in ('systemd-nspawn', 'nsenter', 'setpriv', 'unshare'):
            if not shutil.which(name):
                raise Unavailable(f'{name} is not installed')
        self.name = f'outboxd-test-{os.getpid()}'
        self.folder = tempfile.mkdtemp(prefix='obc-')
        self.groups = [group / self.name for group in map(pathlib.Path, ('/sys/fs/cgroup', '/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified'))
                       if (group / 'cgroup.procs').exists()]
        self.output = open(pathlib.Path(self.folder + '.log'), 'w+', encoding='utf-8', errors='replace')
        self.process = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'TERM', 'unshare', '--mount', 'sh', '-c', START, 'sh', self.folder, self.name, ' '.join(map(str, self.groups)), str(ROOT), TREE],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, start_new_session=True)
        self.leader = None
        try:
            self.wait_running()
        except BaseException:
            self.close()
            raise

    def wait_running(self):
        deadline = time.monotonic() + 30 * SLOW
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            self.leader = self.leader or self.find_leader()
            if self.leader and self.run('systemctl', 'is-active', 'basic.target', check=False).stdout.strip() == 'active':
                return
            time.sleep(0.05)
        raise Unavailable(f'no container with systemd can be started here: {self.said()[-600:]}')

    def find_leader(self):
        """systemd in there: the child of nspawn that is process 1 of another PID namespace."""
        try:
            children = pathlib.Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text().split()
            return next((int(pid) for pid in children if pathlib.Path(f'/proc/{pid}/comm').read_text().strip() == 'systemd'), None)
        except OSError:
            return None

    def said(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text(errors='replace')

    def command(self, *words):
        return ['nsenter', '--target', str(self.leader), '--mount', '--uts', '--ipc', '--net', '--pid', '--root', '--',
                'env', '--chdir=/', *words]

    def join_network(self):
        """From now on this thread, and those that it starts, open their sockets in there. There is no way back."""
        CLONE_NEWNET = 0x40000000
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f'/proc/{self.leader}/ns/net', encoding='ascii') as namespace:
            if libc.setns(namespace.fileno(), CLONE_NEWNET) < 0:
                raise OSError(ctypes.get_errno(), 'setns')

    def run(self, *words, check=True, stdin=None, timeout=60):
        """Runs a command in there; its output as text."""
        ran = subprocess.run(self.command(*words), input=stdin, capture_output=True, text=not isinstance(stdin, bytes), timeout=timeout * SLOW,
                             env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LANG': 'C.UTF-8', 'HOME': '/root', 'DEBIAN_FRONTEND': 'noninteractive'})
        if check and ran.returncode != 0:
            raise AssertionError(f'{" ".join(words)}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}')
        return ran

    def write(self, path, text):
        self.run('sh', '-c', 'mkdir -p "$(dirname "$1")" && cat >"$1"', 'sh', path, stdin=text)

    def read(self, path):
        return self.run('cat', path).stdout

    def close(self):
        if self.process.poll() is None and self.leader:
            self.process.send_signal(signal.SIGTERM)  # nspawn: an orderly end
            try:
                self.process.wait(10 * SLOW)
            except subprocess.TimeoutExpired:
                pass
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # process 1 of the namespace ends with nspawn, and all others with it
            self.process.wait(10)
        self.output.close()
        os.unlink(self.output.name)
        for group in self.groups:
            self.remove_group(group)
        os.rmdir(self.folder)

    def remove_group(self, group):
        for folder, _, _ in os.walk(group, topdown=False):
            for _ in range(100):  # the last process may just be going
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)

"""Children have what they need and nothing else: descriptors, capabilities, system calls, a user of their own."""
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import unittest

import harness
from harness import SystemTest, program, wait_until

EVENTFD_FIRST = 64  # common/base/inherit.h
CAP_DAC_OVERRIDE = 1 << 1
USER = 'daemon'  # of every Debian; owns nothing


def status_of(pid):
    """/proc/PID/status as a dictionary."""
    lines = pathlib.Path(f'/proc/{pid}/status').read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(':') for line in lines)}


def descriptors(pid):
    """{number: what it is}, without the standard streams."""
    found = {}
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            if int(fd) > 2:
                found[int(fd)] = os.readlink(f'/proc/{pid}/fd/{fd}')
    return found


def slot_of(pid):
    words = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().decode().split('\0')
    return int(words[words.index('--slot') + 1])


class Confined(SystemTest):
    limit = 90

    def ready(self, **settings):
        daemon = self.daemon(self.target(), **settings)
        daemon.wait_workers()
        return daemon

    def test_children_hold_exactly_the_descriptors_they_need(self):
        daemon = self.ready()
        state = os.path.realpath(daemon.state)
        slots = {pid: slot_of(pid) for pid in daemon.pids('api') + daemon.pids('worker')}
        worker_slots = {slots[pid] for pid in daemon.pids('worker')}
        ours = set(descriptors(daemon.process.pid).values())
        lifeline = descriptors(daemon.pids('worker')[0])[5]
        self.assertTrue(lifeline.startswith('pipe:'), lifeline)
        for pid, comm in daemon.processes().items():
            if pid == daemon.process.pid:
                continue
            held = descriptors(pid)
            segments = [what for what in held.values() if what.startswith('/dev/shm/')]
            # What it has in common with the supervisor; what has no identity (eventfds) is told by its number.
            common = {what for what in held.values() if what in ours and not what.startswith('anon_inode:')} - set(segments)
            files = {what for what in held.values() if what.startswith('/') and not what.startswith('/dev/')}
            self.assertEqual([what for what in held.values() if 'memfd:' in what], [], f'{comm} has its configuration open')
            # One: should somebody cut the segment, its pages are mapped anew (shm_fault.c).
            self.assertEqual(len(segments), 0 if comm in harness.ROLES['store'] else 1, f'segments of {comm}')
            if comm in harness.ROLES['store']:
                self.assertEqual(common, set())
                self.assertIn(f'{state}/store.lock', files)
                self.assertEqual([fd for fd in held if fd >= EVENTFD_FIRST and 'eventfd' in held[fd]], [])
                continue
            sockets = {what for what in common if what.startswith('socket:')}
            self.assertEqual(len(sockets), 1 if comm == 'outboxd-api' else 0, f'listening sockets of {comm}')
            self.assertEqual(common - sockets, {lifeline}, comm)
            self.assertEqual([os.path.dirname(name) for name in files], [f'{state}/locks'], f'{comm} has its own lock and no other file')
            self.assertRegex(next(iter(files)), rf'\.{slots[pid]}$')
            wakes = {fd - EVENTFD_FIRST for fd in held if fd >= EVENTFD_FIRST and 'eventfd' in held[fd]}
            self.assertIn(slots[pid], wakes)
            if comm == 'outboxd-worker':
                self.assertFalse(wakes & (worker_slots - {slots[pid]}), 'a worker wakes another')
            else:
                self.assertLessEqual(worker_slots, wakes)

    def test_children_gain_nothing_and_have_no_capability(self):
        daemon = self.ready()
        kept = CAP_DAC_OVERRIDE if os.geteuid() == 0 else 0
        for pid in daemon.processes():
            status = status_of(pid)
            if pid == daemon.process.pid:
                continue
            self.assertEqual(status['NoNewPrivs'], '1', status['Name'])
            for name in ('CapPrm', 'CapEff'):
                self.assertEqual(int(status[name], 16) & ~kept, 0, f'{status["Name"]}: {name}')
            self.assertEqual(int(status['CapInh'], 16) | int(status['CapAmb'], 16), 0, status['Name'])
            if os.geteuid() == 0:
                self.assertEqual(int(status['CapBnd'], 16) & ~kept, 0, status['Name'])

    def test_api_and_workers_are_sandboxed_and_the_setting_ends_that(self):
        daemon = self.ready()
        for pid in daemon.pids('api') + daemon.pids('worker'):
            self.assertEqual(status_of(pid)['Seccomp'], '2')
        old = set(daemon.pids('api') + daemon.pids('worker'))
        daemon.settings['sandbox'] = False
        daemon.write_config()
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: 'new configuration in force' in daemon.log(), 20, daemon.log)
        wait_until(lambda: not old & set(daemon.processes()), 20, 'the old ones to go')
        for pid in daemon.pids('api') + daemon.pids('worker'):
            self.assertEqual(status_of(pid)['Seccomp'], status_of(os.getpid())['Seccomp'])

    def test_an_unknown_user_is_told_before_anything_starts(self):
        daemon = self.daemon(None, start=False, user='no-such-user')
        self.assertEqual(daemon.spawn().wait(20), 2)
        self.assertIn('user: no user of this system is called no-such-user', daemon.log())
        daemon.settings.update(user=pwd.getpwuid(os.geteuid()).pw_name, group='no-such-group')
        self.assertEqual(daemon.spawn().wait(20), 2)
        self.assertIn('no group of this system is called no-such-group', daemon.log())
        self.assertEqual(list(daemon.state.iterdir()), [])


@unittest.skipUnless(os.geteuid() == 0, 'only root has users to choose from')
class OtherUser(SystemTest):
    """outboxd is started as root, its children are somebody else."""
    limit = 120

    def start(self, **settings):
        target = self.target()
        daemon = self.daemon(target, start=False, user=USER, **settings)
        # Where that user can get at: the folder of the build may be closed to it.
        daemon.folder.chmod(0o755)
        for name in ('outboxd', 'outboxd-api', 'outboxd-worker'):
            (daemon.libexec / name).unlink()
            shutil.copy(program(name), daemon.libexec / name)
        daemon.settings['target'] = {'url': f'http://localhost:{target.port}'}
        return daemon

    def test_deliveries_reloads_upgrades_and_deaths_go_as_ever_and_all_of_it_is_that_users(self):
        daemon = self.start(log={'level': 'debug', 'file': 'own.log'})
        own_log, path = daemon.folder / 'own.log', daemon.folder / 'api.sock'
        daemon.settings.update(listen=[daemon.settings['listen'], f'unix:{path}'])
        daemon.start().wait_workers()
        user = pwd.getpwnam(USER)

        def says(text, count=1):
            wait_until(lambda: own_log.read_text().count(text) >= count, 20, own_log.read_text)

        def all_are_that_users():
            for pid in daemon.processes():
                status = status_of(pid)
                if pid != daemon.process.pid:
                    self.assertEqual(status['Uid'].split(), [str(user.pw_uid)] * 4, status['Name'])
                    self.assertEqual(status['Gid'].split(), [str(user.pw_gid)] * 4, status['Name'])
                    self.assertNotIn('0', status['Groups'].split(), status['Name'])
                    self.assertEqual(int(status['CapPrm'], 16) | int(status['CapBnd'], 16), 0, status['Name'])
            self.assertEqual(status_of(daemon.process.pid)['Uid'].split()[0], '0')
            for name in ('.', 'locks', 'store', 'store/valkey.log', 'store.lock', 'store.sock', 'supervisor.lock'):
                self.assertEqual((daemon.state / name).stat().st_uid, user.pw_uid, name)
            self.assertEqual((own_log.stat().st_uid, path.stat().st_uid), (user.pw_uid, user.pw_uid))

        def delivers(kind):
            entry = daemon.accept_patiently(session='s', kind=kind, payload={})
            daemon.wait_status(entry, 'sent')

        all_are_that_users()
        delivers('note')
        with socket.socket(socket.AF_UNIX) as api:
            api.connect(str(path))
            api.sendall(harness.raw_request('GET', '/healthz'))
            self.assertEqual(harness.read_answer(api).status, 200)
        daemon.process.send_signal(signal.SIGHUP)
        says('new configuration in force')
        daemon.client.close()
        daemon.process.send_signal(signal.SIGUSR2)
        says('new configuration in force', 2)
        daemon.client.close()
        daemon.kill('worker', 'store')
        delivers('note')
        daemon.wait_workers()
        own_log.rename(daemon.folder / 'old.log')
        daemon.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: own_log.exists() and own_log.read_text().count('log file opened anew') >= 4, 10, own_log.read_text)
        all_are_that_users()
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        delivers('note')

    def test_a_folder_that_is_not_for_state_alone_is_never_given_away(self):
        daemon = self.start()
        other = daemon.state / 'somebody.txt'
        other.write_text('mine')
        self.assertEqual(daemon.spawn().wait(20), 1)
        self.assertIn('cannot give the state directory', daemon.log())
        self.assertEqual((other.stat().st_uid, daemon.state.stat().st_uid), (0, 0))
        other.unlink()
        shutil.chown(daemon.state, USER)
        (daemon.state / 'store').mkdir()  # root's, in a folder where that user could have put anything
        self.assertEqual(daemon.spawn().wait(20), 1)
        self.assertIn('chown -R', daemon.log())

    def test_who_is_not_root_cannot_choose_another_user(self):
        daemon = self.start()
        daemon.write_config()
        os.chmod(daemon.config, 0o644)
        nobody = pwd.getpwnam('nobody').pw_uid
        ran = subprocess.run([str(daemon.libexec / 'outboxd'), '--config', str(daemon.config)], user=nobody, group=nobody, extra_groups=[],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * harness.SLOW)
        self.assertEqual(ran.returncode, 2)
        self.assertIn(f'user: only root can run its children as {USER}', ran.stderr)


if __name__ == '__main__':
    harness.main()

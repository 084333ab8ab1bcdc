"""No descriptor is left by what came and went: clients, deliveries, retries, readers of events, whole generations of children.
Memory over minutes: tests/system/churn.py."""
import os
import signal

import churn
import harness
from harness import SystemTest, wait_until


class Churn(SystemTest):
    limit = 90

    def counts(self, daemon):
        """How many descriptors each process has, of what stays. A worker keeps some connections to targets for later."""
        found = {}
        for pid, comm in daemon.processes().items():
            links = churn.links(pid)
            found[pid] = len([link for link in links if comm != 'outboxd-worker' or not link.startswith('socket:')])
        return found

    def churn(self, daemon, messages=80):
        load = churn.Load(daemon, 3)
        wait_until(lambda: load.accepted >= messages, 40, lambda: f'{load.accepted} accepted')
        load.stop()

    def test_load_and_reloads_leave_no_descriptor_behind(self):
        target = self.target()
        churn.misbehave(target)
        daemon = self.daemon(target)
        daemon.wait_workers()
        daemon.client.close()
        self.churn(daemon)  # connections to the store, epoll sets: what is made once is there after it
        before = self.counts(daemon)
        self.churn(daemon)
        wait_until(lambda: all(now <= before[pid] for pid, now in self.counts(daemon).items()), 20,
                   lambda: f'as few descriptors as before: {before}, now {self.counts(daemon)}')
        supervisor = daemon.process.pid
        for n in range(3):
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: daemon.log().count('new configuration in force') == n + 1, 20, daemon.log)
        wait_until(lambda: len(os.listdir(f'/proc/{supervisor}/fd')) <= before[supervisor], 20,
                   lambda: f'{before[supervisor]} descriptors before, now {churn.links(supervisor)}')


if __name__ == '__main__':
    harness.main()

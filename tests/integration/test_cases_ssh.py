"""Through a real ssh to a real sshd on loopback, with keys and a port of the test's own."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import unittest

import sandbox


@contextlib.contextmanager
def sshd(folder, env):
    """A server on loopback with keys of its own; gives the options of ssh to reach it as "box"."""

    def path(name):
        return os.path.join(folder, name)

    for name in ("host", "user"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path(name)]
        subprocess.run(keygen, check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(path("sshd_config"), "w", encoding="ascii") as file:
        file.write(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {path('host')}\nPidFile none\n"
            f"AuthorizedKeysFile {path('user.pub')}\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        )
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    server = subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-e", "-f", path("sshd_config")], env=env,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        options = [f"Port={port}", f"IdentityFile={path('user')}", "HostName=127.0.0.1",
                   "IdentitiesOnly=yes", "BatchMode=yes", "StrictHostKeyChecking=no",
                   f"UserKnownHostsFile={path('known')}", "LogLevel=ERROR"]
        yield [word for option in options for word in ("-o", option)]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


class Ssh(sandbox.Case):
    def test_a_tree_of_odd_names_is_mirrored_through_ssh(self):
        for name, data in sandbox.ODD.items():
            self.make(name, data)
        for i in range(170):
            self.make(f"many {i % 7}/{i}'s\u00e9", os.urandom(i * 31))
        self.make("large", os.urandom(3 << 20))
        with sshd(self.work, self.env()) as options:
            command = ["ssh", *options, "box", "sh"]
            run = self.sync_by("exec", "--names", "posix", command=command, timeout=150)
            self.assert_mirrored(run)
            received = run.report["bytes"]["received"]
            self.assertEqual(received, sum(map(len, self.content().values())))
            run = self.sync_by("exec", "--names", "posix", command=command)
            self.assertEqual((run.status, run.report["bytes"]["received"]), (0, 0), run.err)
            self.assertEqual(run.count("unchanged"), len(self.content()))

    def test_a_host_that_cannot_be_reached_is_told(self):
        self.keep()
        with sshd(self.work, self.env()) as options:
            run = self.sync_by("exec", command=["ssh", *options, "box", "no-such-shell"])
            self.assert_kept(run, "unreachable", "status 127")
        run = self.sync_by("exec", command=["ssh", *options, "box", "sh"])
        self.assert_kept(run, "unreachable", "COMMAND ended with status 255")
        self.assertIn("Connection refused", run.err)


if __name__ == "__main__":
    unittest.main()

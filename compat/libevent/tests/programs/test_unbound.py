"""unbound answers alike on the original and on the drop-in (see compat/tests/programs.py).

It needs no network: its answers are local data, or come from a second unbound.
"""

import os
import re
import socket
import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from programs import TIMEOUT_S, ProgramTest, eventually, free_port, main, need, run, server

QUERIES = int(os.environ.get("TAMBOUR_TEST_REQUESTS", "4000"))
NAMES = 500


class Unbound(ProgramTest):
    library = "libevent"

    def setUp(self):
        need("unbound", "dnsperf")
        super().setUp()
        # Each tenth name does not exist.
        (self.folder / "queries").write_text("".join(
            f"host{i % NAMES}.{'nowhere' if i % 10 == 0 else 'zone'}.test A\n"
            for i in range(QUERIES)))

    @contextmanager
    def unbound(self, ours: bool, name: str, port: int, *settings: str, threads: int = 1):
        """Runs unbound with these lines of configuration."""
        configuration = self.folder / f"{name}.conf"
        control = self.folder / f"{name}.control"
        configuration.write_text("\n".join((
            "server:", ' username: ""', ' chroot: ""', ' pidfile: ""',
            f' directory: "{self.folder}"',
            " use-syslog: no", " do-daemonize: no", f" num-threads: {threads}",
            f" interface: 127.0.0.1@{port}", " do-ip6: no", " so-reuseport: yes",
            ' module-config: "iterator"', " do-not-query-localhost: no", *settings,
            "remote-control:", " control-enable: yes", f' control-interface: "{control}"',
            " control-use-cert: no", "")))
        with server(ours, port, "unbound", "-d", "-p", "-c", configuration) as process:
            self.check_library(process.pid, ours)
            yield lambda *words: run(ours, "unbound-control", "-c", configuration, *words)

    def zone(self) -> list[str]:
        return [' local-zone: "zone.test." static', ' local-zone: "nowhere.test." static',
                *(f' local-data: "host{i}.zone.test. A 192.0.2.{i % 250}"' for i in range(NAMES))]

    def load(self, port: int, mode: str, *words: object) -> list[str]:
        """Sends all queries and returns the counts of dnsperf."""
        said = run(False, "dnsperf", "-s", "127.0.0.1", "-p", port, "-m", mode, "-d",
                   self.folder / "queries", "-n", 1, "-q", 40, "-t", 60, *words)
        counts = re.findall(r"^ +(?:Queries (?:sent|completed|lost)|Response codes): +(.*)$", said,
                            re.MULTILINE)
        self.assertEqual(counts[0].split()[0], str(QUERIES), said)
        self.assertIn("0 (0.00%)", counts, said)
        return counts

    def test_udp_and_tcp(self):
        """Local data over UDP and TCP, with two threads."""

        def scenario(ours: bool) -> list[list[str]]:
            port = free_port()
            with self.unbound(ours, f"server-{ours}", port, *self.zone(), threads=2):
                return [self.load(port, "udp", "-c", 4), self.load(port, "tcp", "-c", 10)]

        self.assert_same_on_both(scenario)

    def test_tls(self):
        """Local data over TLS."""
        key, certificate = self.certificate()

        def scenario(ours: bool) -> list[str]:
            plain, port = free_port(), free_port()
            with self.unbound(ours, f"server-{ours}", plain, *self.zone(),
                              f" interface: 127.0.0.1@{port}", f" tls-port: {port}",
                              f' tls-service-key: "{key}"', f' tls-service-pem: "{certificate}"'):
                return self.load(port, "dot", "-c", 8)

        self.assert_same_on_both(scenario)

    def test_forwarding(self):
        """One unbound asks another one, by UDP and by TCP; the control program changes data."""

        def scenario(ours: bool) -> list:
            said = []
            for upstream_by_tcp in ("no", "yes"):
                port, upstream = free_port(), free_port()
                forward = ("forward-zone:", ' name: "test."',
                           f" forward-addr: 127.0.0.1@{upstream}", "server:",
                           ' local-zone: "test." transparent',
                           ' target-fetch-policy: "0 0 0 0 0"',
                           f" tcp-upstream: {upstream_by_tcp}")
                name = f"{ours}-{upstream_by_tcp}"
                with self.unbound(ours, f"upstream-{name}", upstream, *self.zone()), \
                        self.unbound(ours, f"front-{name}", port, *forward) as control:
                    said.append(self.load(port, "udp"))
                    self.assertIn("ok", control("flush_zone", "test."))
                    said.append(self.load(port, "tcp", "-c", 4))
                    control("local_data", "new.test. A 192.0.2.9")
                    said.append(re.findall(r"new\.test\..*", control("list_local_data")))
                    control("reload")
                    eventually(lambda check=control: "is running" in check("status"), "it reloads")
                    said.append(self.load(port, "udp"))
                    counts = dict(line.split("=") for line in control("stats").splitlines())
                    said.append(counts["total.num.queries"])
            return said

        self.assert_same_on_both(scenario)

    def test_idle_connection(self):
        """A timer closes a connection on which no query arrives."""

        def scenario(ours: bool) -> bytes:
            port = free_port()
            with self.unbound(ours, f"server-{ours}", port, *self.zone(),
                              " tcp-idle-timeout: 500"), \
                    socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
                return connection.recv(1)

        self.assertEqual(self.assert_same_on_both(scenario), b"")


if __name__ == "__main__":
    main()

"""pgbouncer serves alike on the original and on the drop-in (see compat/tests/programs.py).

The server is a PostgreSQL of the test. All connections use Unix sockets in a temporary directory.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from programs import ENV, UNPRIVILEGED, ProgramTest, connects, eventually, main, need, run, server

TRANSACTIONS = int(os.environ.get("TAMBOUR_TEST_TRANSACTIONS", "150"))
CLIENTS = 20
DATABASE_PORT, POOL_PORT = 5432, 6432  # Parts of the names of the sockets.
PRIVILEGES = {"user": UNPRIVILEGED} if UNPRIVILEGED else {}
ENV["PATH"] += "".join(f":{path}" for path in sorted(Path("/usr/lib/postgresql").glob("*/bin")))


class Pgbouncer(ProgramTest):
    library = "libevent"

    def setUp(self):
        need("pgbouncer", "postgres", "initdb", "pgbench", "psql")
        super().setUp()

    def program(self, name: str, port: int, *words: object, **options) -> str:
        return run(False, name, "-h", self.folder, "-p", port, "-U", "test", *words, cwd="/",
                   **options)

    @contextmanager
    def postgres(self):
        """A new database server, filled by pgbench."""
        data = self.folder / "data"
        run(False, "initdb", "-D", data, "-A", "trust", "-U", "test", "--no-sync", "-E", "UTF8",
            "--no-instructions", cwd="/", **PRIVILEGES)
        (data / "postgresql.conf").write_text("".join(f"{line}\n" for line in (
            "listen_addresses = ''", f"unix_socket_directories = '{self.folder}'",
            f"port = {DATABASE_PORT}", "max_connections = 40", "fsync = off",
            "synchronous_commit = off", "full_page_writes = off", "autovacuum = off",
            "shared_buffers = '16MB'")))
        with server(False, self.folder / f".s.PGSQL.{DATABASE_PORT}", "postgres", "-D", data,
                    cwd="/", **PRIVILEGES) as process:
            eventually(lambda: self.answers(DATABASE_PORT), "the database answers")
            self.program("pgbench", DATABASE_PORT, "-i", "-q", "-s", 1, "postgres")
            yield process
            # Smart shutdown would wait for the connections of pgbouncer.
            process.send_signal(2)

    def answers(self, port: int) -> bool:
        return subprocess.run(["pg_isready", "-q", "-h", self.folder, "-p", str(port)], env=ENV,
                              check=False).returncode == 0

    @contextmanager
    def pgbouncer(self, ours: bool, *settings: str):
        users = self.folder / "users.txt"
        users.write_text('"test" ""\n')
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text("".join(f"{line}\n" for line in (
            "[databases]", f"postgres = host={self.folder} port={DATABASE_PORT}",
            "[pgbouncer]", "listen_addr =", f"unix_socket_dir = {self.folder}",
            f"listen_port = {POOL_PORT}", "auth_type = trust", f"auth_file = {users}",
            "admin_users = test", "max_client_conn = 200", "default_pool_size = 5", *settings)))
        configuration.chmod(0o666)
        with server(ours, self.folder / f".s.PGSQL.{POOL_PORT}", "pgbouncer", configuration,
                    **PRIVILEGES) as process:
            self.check_library(process.pid, ours)
            yield process
        eventually(lambda: not connects(self.folder / f".s.PGSQL.{POOL_PORT}"), "pgbouncer ends")

    def console(self, command: str, status: int = 0) -> list[list[str]]:
        """Runs a command of the administrator."""
        said = self.program("psql", POOL_PORT, "-X", "-A", "-t", "-c", command, "pgbouncer",
                            status=status)
        return [line.split("|") for line in said.splitlines()]

    def sums(self) -> list[list[str]]:
        """What the transactions of pgbench must leave equal, and their number."""
        said = self.program("psql", DATABASE_PORT, "-X", "-A", "-t", "-c",
                            "select (select sum(abalance) from pgbench_accounts),"
                            " (select sum(tbalance) from pgbench_tellers),"
                            " (select sum(bbalance) from pgbench_branches), sum(delta), count(*)"
                            " from pgbench_history", "postgres")
        return [line.split("|") for line in said.splitlines()]

    def load(self, *words: object) -> list[str]:
        said = self.program("pgbench", POOL_PORT, "-n", "-c", CLIENTS, "-j", 2, "-t", TRANSACTIONS,
                            *words, "postgres")
        counts = re.findall(r"^number of (?:transactions actually|failed).*?: ([\d/]+)", said,
                            re.MULTILINE)
        total = CLIENTS * TRANSACTIONS
        self.assertEqual(counts, [f"{total}/{total}", "0"], said)
        return counts

    def test_pools(self):
        """pgbench in the three modes of pooling, with each protocol of queries."""

        def scenario(ours: bool) -> None:
            total = int(self.sums()[0][4])
            for mode, protocol in (("transaction", "simple"), ("session", "prepared"),
                                   ("statement", "extended")):
                # More clients than connections: only a session occupies one for long.
                size = CLIENTS if mode == "session" else 5
                with self.pgbouncer(ours, f"pool_mode = {mode}", f"default_pool_size = {size}"):
                    if mode == "statement":
                        self.load("-S", "-M", protocol)
                        continue
                    self.load("-M", protocol)
                total += CLIENTS * TRANSACTIONS
                sums = self.sums()[0]
                self.assertEqual(len(set(sums[:4])), 1, sums)
                self.assertEqual(int(sums[4]), total)

        with self.postgres():
            self.assert_same_on_both(scenario)

    def test_console(self):
        """Reloading under load; pauses; large results; lost servers; timers; signals."""

        def scenario(ours: bool) -> list:
            said = []
            with self.pgbouncer(ours, "pool_mode = transaction", "query_wait_timeout = 120",
                                "server_idle_timeout = 1") as process:
                load = ["pgbench", "-h", str(self.folder), "-p", str(POOL_PORT), "-U", "test", "-n",
                        "-c", str(CLIENTS), "-t", str(TRANSACTIONS), "postgres"]
                with subprocess.Popen(load, env=ENV, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True) as running:
                    for _ in range(5):
                        self.console("RELOAD")
                    output, _ = running.communicate(timeout=240)
                self.assertEqual(running.returncode, 0, output)
                said.append(self.console("SHOW VERSION"))
                # Not under load: pgbouncer counts a closed login as one that failed.
                self.console("RECONNECT")
                # A query waits for the end of a pause.
                self.console("PAUSE")
                with ThreadPoolExecutor() as pool:
                    answer = pool.submit(self.program, "psql", POOL_PORT, "-X", "-A", "-t", "-c",
                                         "select 42", "postgres")
                    eventually(lambda: any(row[0] == "postgres" and row[3] == "1"
                                           for row in self.console("SHOW POOLS")), "it waits")
                    self.console("RESUME")
                    said.append(answer.result())
                said.append([row[:2] for row in self.console("SHOW DATABASES")])
                # A result of several megabytes, larger than all buffers.
                query = "select i, repeat('x', 200) from generate_series(1, 20000) i"
                said.append(self.program("psql", POOL_PORT, "-X", "-A", "-t", "-c", query,
                                         "postgres"))
                said.append(self.program("psql", POOL_PORT, "-X", "-A", "-t", "-c",
                                         "copy (select 1) to stdout; select 2", "postgres"))
                # A timer of the program closes idle connections.
                eventually(lambda: not self.console("SHOW SERVERS"), "idle connections are closed")
                self.program("psql", POOL_PORT, "-c", "select 1", "nonexistent", status=2)
                process.send_signal(1)  # Reloads.
                self.console("KILL postgres")
                self.console("RESUME postgres")
                said.append(self.program("psql", POOL_PORT, "-X", "-A", "-t", "-c", "select 42",
                                         "postgres"))
                process.send_signal(2)  # Ends when all clients are gone.
                said.append(process.wait(60))
            return said

        with self.postgres():
            self.assert_same_on_both(scenario)


if __name__ == "__main__":
    main()

"""tmux behaves alike on the original and on the drop-in (see compat/tests/programs.py)."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from programs import (ENV, TIMEOUT_S, ProgramTest, command, connects, eventually, main, need, run)

LINES = int(os.environ.get("TAMBOUR_TEST_LINES", "300000"))
# The shell prints nothing but the output of commands.
SHELL = "env PS1= PS2= sh"


class Terminal:
    """A client of tmux in a terminal of its own."""

    def __init__(self, command: list[str], columns: int, rows: int):
        self.seen = ""
        self.main, terminal = pty.openpty()
        os.set_blocking(self.main, False)
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            ["setsid", "-c", *command], stdin=terminal, stdout=terminal, stderr=terminal,
            env={**ENV, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        os.close(terminal)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.main, keys.encode())

    def read(self) -> str:
        """Everything that tmux has drawn so far, without control sequences."""
        try:
            while drawn := os.read(self.main, 65536):
                self.seen += re.sub(r"\x1b[\[(][?>]?[\d;]*[A-Za-z]", "",
                                    drawn.decode(errors="replace"))
        except OSError:  # Nothing more for now, or the client has ended.
            pass
        return self.seen

    def expect(self, text: str) -> None:
        eventually(lambda: text in self.read(), f"{text!r} on the terminal")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.main)


class Tmux(ProgramTest):
    library = "libevent"

    def setUp(self):
        need("tmux", "setsid")
        super().setUp()

    @contextmanager
    def session(self, ours: bool, *options: object):
        """Starts a server with one session, and returns a function that runs a command of tmux."""
        address = self.folder / f"socket-{ours}"

        def tmux(*words: object) -> str:
            # Only the server needs the drop-in: it runs all commands.
            return run(False, "tmux", "-S", address, *words)

        run(ours, "tmux", "-S", address, "-f", "/dev/null", "new-session", "-d", "-x", 80, "-y", 24,
            "-s", "main", *options, SHELL)
        server = int(tmux("display-message", "-p", "#{pid}"))
        try:
            self.check_library(server, ours)
            yield tmux
        finally:
            tmux("kill-server")
            eventually(lambda: ended(server) and not connects(address), "the server ends")

    def type(self, tmux, pane: str, line: str) -> None:
        tmux("send-keys", "-t", pane, "-l", line)
        tmux("send-keys", "-t", pane, "Enter")

    def test_output(self):
        """Hundreds of thousands of lines pass through a pane and a pipe."""

        def scenario(ours: bool) -> None:
            piped = self.folder / f"piped-{ours}"
            with self.session(ours) as tmux:
                tmux("set-option", "-g", "history-limit", 3000)
                pane = tmux("new-window", "-P", "-F", "#{pane_id}", SHELL).strip()
                # Without the echo of what is typed, what is piped is the output alone.
                self.type(tmux, pane, f"stty -echo; tmux -S {tmux_of(tmux)} wait-for -S quiet")
                tmux("wait-for", "quiet")
                tmux("pipe-pane", "-t", pane, "-o",
                     f"cat > {piped}; tmux -S {tmux_of(tmux)} wait-for -S piped")
                self.type(tmux, pane, f"seq {LINES}; tmux -S {tmux_of(tmux)} wait-for -S printed")
                tmux("wait-for", "printed")
                last = str(LINES)
                eventually(lambda: tmux("capture-pane", "-p", "-t", pane).split()[-1:] == [last],
                           "the last line is on the screen")
                tmux("pipe-pane", "-t", pane)
                tmux("wait-for", "piped")
                self.assertEqual(piped.read_text().split(),
                                 [str(number) for number in range(1, LINES + 1)])
                history = tmux("capture-pane", "-p", "-S", "-", "-t", pane).split()
                self.assertEqual(history, [str(LINES - i) for i in range(len(history))][::-1])
                # tmux removes a tenth of the history when the limit is reached.
                self.assertGreater(len(history), 2600)

        self.assert_same_on_both(scenario)

    def test_script(self):
        """Splits, layouts, hooks, conditions, jobs, channels, buffers and formats."""

        def scenario(ours: bool) -> list[str]:
            said = []
            channel = f"{self.folder}/socket-{ours}"
            with self.session(ours) as tmux:

                def panes() -> None:
                    said.append(tmux("list-panes", "-F", "#{pane_width}x#{pane_height}"
                                     " #{pane_at_top} #{window_layout}"))

                for words in (("split-window", "-h"), ("split-window", "-v"),
                              ("split-window", "-v", "-l", "5")):
                    tmux(*words, SHELL)
                    panes()
                for layout in ("even-horizontal", "main-vertical", "tiled"):
                    tmux("select-layout", layout)
                    panes()
                tmux("swap-pane", "-s", "main:0.0", "-t", "main:0.3")
                tmux("resize-window", "-x", 120, "-y", 50)
                panes()
                # Conditions and jobs run in the background of the server.
                for command in ("true", "false", "exit 3", f"test -S {channel}"):
                    tmux("if-shell", command, "set -g @answer yes", "set -g @answer no")
                    said.append(tmux("show-options", "-gv", "@answer"))
                said.append(tmux("run-shell", "seq 10000 | tail -n 3"))
                tmux("run-shell", "-b", f"sleep 0.1; tmux -S {channel} wait-for -S background")
                tmux("wait-for", "background")
                tmux("run-shell", "-d", "0.1", "-b", f"tmux -S {channel} wait-for -S delayed")
                tmux("wait-for", "delayed")
                # A lock that one client holds and another one waits for.
                tmux("wait-for", "-L", "lock")
                with subprocess.Popen(["tmux", "-S", channel, "wait-for", "-L", "lock"],
                                      env=ENV) as waiting:
                    tmux("wait-for", "-U", "lock")
                    said.append(str(waiting.wait(TIMEOUT_S)))
                tmux("wait-for", "-U", "lock")
                tmux("set-hook", "-g", "after-rename-window", "set -g @hook ran")
                tmux("rename-window", "renamed")
                said.append(tmux("show-options", "-gv", "@hook"))
                text = self.folder / "text"
                text.write_text("".join(f"line {i}\n" for i in range(50_000)))
                tmux("load-buffer", "-b", "big", text)
                said.append(tmux("show-buffer", "-b", "big"))
                tmux("save-buffer", "-b", "big", self.folder / "saved")
                self.assertEqual((self.folder / "saved").read_text(), text.read_text())
                # A program that ends, and one that is respawned.
                tmux("set-option", "-g", "remain-on-exit", "on")
                pane = tmux("split-window", "-t", "main:0", "-P", "-F", "#{pane_id}", "exit 7")
                # Not #{pane_dead_status}: libutempter, which tmux calls when a pane ends, ignores
                # SIGCHLD for a moment, so the status of the pane's program may be lost.
                dead = ("display-message", "-p", "-t", pane.strip(), "#{pane_dead}")
                eventually(lambda: tmux(*dead).strip() == "1", "the pane is dead")
                tmux("respawn-pane", "-t", pane.strip(),
                     f"tmux -S {channel} wait-for -S respawned; cat")
                tmux("wait-for", "respawned")
                for _ in range(4):
                    tmux("kill-pane", "-t", "main:0.0")
                    panes()
                said.append(tmux("list-sessions", "-F", "#{session_name} #{session_windows}"))
            return said

        self.assert_same_on_both(scenario)

    def test_terminal(self):
        """A client in a terminal: keys, resizing, mouse, detaching."""

        def scenario(ours: bool) -> list[str]:
            channel = f"{self.folder}/socket-{ours}"
            with self.session(ours) as tmux:
                # What is typed at once must not be taken for pasted text.
                tmux("set-option", "-g", "assume-paste-time", 0)
                terminal = Terminal(command(ours, "tmux", "-S", channel, "attach"), 100, 30)
                try:
                    terminal.expect("[main]")
                    terminal.type("echo typed-$((20 + 22))\r")
                    terminal.expect("typed-42")
                    terminal.resize(70, 20)
                    size = ("display-message", "-p", "#{client_width}x#{client_height}")
                    eventually(lambda: tmux(*size).strip() == "70x20", "the new size")
                    terminal.type("\x02%")  # Splits the window.
                    eventually(lambda: len(tmux("list-panes").splitlines()) == 2, "two panes")
                    layout = tmux("list-panes", "-F", "#{pane_width}x#{pane_height}")
                    drawn = len(terminal.read())
                    terminal.type("\x02:")
                    eventually(lambda: ":  " in terminal.read()[drawn:], "the prompt")
                    terminal.type("rename-window fromprompt\r")
                    eventually(lambda: "fromprompt" in tmux("list-windows"), "the new name")
                    terminal.type("stty size\r")
                    eventually(lambda: "19 34" in tmux("capture-pane", "-p"), "the pane's size")
                    terminal.type("\x02d")
                    terminal.expect("[detached (from session main)]")
                    status = terminal.process.wait(TIMEOUT_S)
                finally:
                    terminal.close()
                return [layout, str(status)]

        self.assert_same_on_both(scenario)

    def test_control_mode(self):
        """A client in control mode receives notifications and the output of panes."""

        def scenario(ours: bool) -> list[str]:
            address = self.folder / f"socket-{ours}"
            with self.session(ours):
                with subprocess.Popen(command(ours, "tmux", "-S", address, "-C", "attach"), env=ENV,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
                    seen = []

                    def read_to(beginning: str) -> None:
                        while not seen or not seen[-1].startswith(beginning):
                            line = client.stdout.readline().decode()
                            self.assertTrue(line, seen)
                            seen.append(line)

                    def write(command: str) -> None:
                        client.stdin.write(command.encode() + b"\n")
                        client.stdin.flush()

                    read_to("%session-changed")
                    self.check_library(client.pid, ours)
                    write(f"new-window -n second '{SHELL}'")
                    read_to("%session-window-changed")
                    # tmux may drop the last output of a pane that closes.
                    write("send-keys 'echo ${HOME:+out}put' Enter")
                    while not any("output\\015\\012" in line for line in seen):
                        read_to("%output")
                        seen[-1] = seen[-1].removeprefix("%output")
                    write("send-keys exit Enter")
                    read_to("%unlinked-window-close")
                    write("detach")
                    read_to("%exit")
                    client.stdin.close()
                    self.assertEqual(client.wait(TIMEOUT_S), 0)
            # Output arrives in any number of pieces, and blocks have times and numbers.
            return [re.sub(r"(%begin|%end) .*", r"\1", line) for line in seen
                    if line.startswith(("%begin", "%end", "%session", "%unlinked", "%exit"))]

        self.assert_same_on_both(scenario)


def tmux_of(tmux) -> str:
    return tmux("display-message", "-p", "#{socket_path}").strip()


def ended(pid: int) -> bool:
    """Whether a process has ended, whoever its parent is."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


if __name__ == "__main__":
    main()

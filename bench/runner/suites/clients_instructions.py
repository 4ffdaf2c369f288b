"""Instructions of clients: the suite `clients`, counted instead of timed."""

import shutil
import tempfile
from pathlib import Path

from ..model import Metric, NotMeasured
from ..subjects import executable
from ..suite import number, parse_report, sample
from .clients import DATABASES, Clients
from .instructions import total_instructions

# Two runs that differ only in this: what connecting costs cancels out.
OPERATIONS = (2000, 8000)


class ClientsInstructions(Clients):
    """User-space instructions per operation of a client, counted by callgrind."""

    name = "clients-instructions"
    title = "Instructions of clients"
    how = ("The program runs twice under valgrind's callgrind, with different numbers of "
           "operations. The difference in instructions of the process that has the client is "
           "divided by the difference in operations.")
    order = 99.6
    parameters = Clients.parameters[:2]
    metrics = (Metric("instructions_per_operation", "instructions", "instructions per operation",
                      comparatives=("fewer", "more")),)
    rounds = 1
    time_limit = 180.0
    exact = True

    def unavailable(self):
        return super().unavailable() or (
            None if shutil.which("valgrind") else "valgrind is not installed")

    def cost(self, cell):
        return 6 + 4 * (cell.get("client") in DATABASES)

    def measure(self, subject, cell, launcher):
        path = executable(launcher.build, self.program, subject)
        counts, operations = [], []
        for amount in OPERATIONS:
            with tempfile.TemporaryDirectory(prefix="tambour-callgrind-") as scratch:
                # The server is a process of its own.
                out = Path(scratch) / "out.%p"
                text = launcher.run(
                    ["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={out}",
                     str(path), *self.arguments(cell), "--operations", str(amount)],
                    env=subject.env, fixed_addresses=True)
                report = parse_report(text)
                last = report["iterations"][-1]
                counts.append(total_instructions(
                    out.parent / f"out.{number(last, 'process'):.0f}"))
                operations.append(number(last, "operations"))
        per_operation = (counts[1] - counts[0]) / (operations[1] - operations[0])
        if per_operation <= 0:
            raise NotMeasured("took no more instructions for more operations")
        return sample(subject, report, {self.metrics[0].name: round(per_operation)})


SUITE = ClientsInstructions()

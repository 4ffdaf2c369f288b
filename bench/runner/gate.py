"""The regression gate: compares Tambour's instruction counts with those that were committed.

The file has one line for each subject and cell, so that a diff shows what changed.
"""

import json
from pathlib import Path

from rich.table import Table

from .figures import Figures
from .results import check_writable
from .subjects import CONTROL, is_ours

SCHEMA = 1
# Counts repeat, but a value near a half may be rounded either way: with timeouts, a few
# instructions in ten thousand events depend on the clock.
TOLERANCE = 1
# Of a large count, such as that of an HTTP request, which calls memcpy(3) and others:
# their variants differ between processors.
TOLERANCE_SHARE = 0.02
LARGE_COUNT = 1000


def add_options(parser) -> None:
    """Adds --gate, --tolerance and --record."""
    parser.add_argument("--gate", type=Path, metavar="FILE",
                        help="instructions: exit with 1 if Tambour executes more than in FILE")
    parser.add_argument("--tolerance", type=int, metavar="N",
                        help=f"instructions: the increase that passes the gate (default "
                             f"{TOLERANCE})")
    parser.add_argument("--record", type=Path, metavar="FILE",
                        help="instructions: write Tambour's counts to FILE")


def check_options(options, chosen: bool) -> None:
    """ValueError for a file that cannot be read, or for options without their suite or gate."""
    given = [name for name in ("gate", "tolerance", "record")
             if getattr(options, name) is not None]
    if given and not chosen:
        raise ValueError(f"--{given[0]} requires the suite instructions")
    if options.tolerance is not None:
        if options.gate is None:
            raise ValueError("--tolerance requires --gate FILE")
        if options.tolerance < 0:
            raise ValueError("--tolerance is a number of instructions, at least 0")
    if options.gate is not None:
        read(options.gate)
    if options.record is not None:
        if not options.record.parent.is_dir():
            raise ValueError(f"--record {options.record}: there is no such directory")
        check_writable(options.record)


def conclude(suite, document: dict, options, console) -> int:
    """Records and compares as the options request; returns 1 if the gate failed."""
    status = 0
    if options.gate is not None:
        status = compare(suite, document, read(options.gate),
                         TOLERANCE if options.tolerance is None else options.tolerance, console)
    if options.record is not None:
        count = record(suite, document, options.record)
        console.print(f"recorded {count} counts", highlight=False)
        if not count:
            return 1
    return status


def read(path: Path) -> dict:
    """A file that `record` wrote; raises ValueError if it is invalid."""
    try:
        committed = json.loads(path.read_text())
        valid = committed["schema"] == SCHEMA and all(
            isinstance(each["value"], int) and isinstance(each["params"], dict)
            and isinstance(each["subject"], str) for each in committed["figures"])
    except OSError as error:
        raise ValueError(f"--gate {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        valid = False
    if not valid or not committed["figures"]:
        raise ValueError(f"--gate {path}: not a file written by --record")
    return committed


def record(suite, document: dict, path: Path) -> int:
    """Writes Tambour's counts and returns their number. Without any, no file is written."""
    lines = [json.dumps({"subject": e["subject"], "backend": e["backend"], "params": e["params"],
                         "value": round(e["min"])})
             for e in Figures(suite, document).entries
             if is_ours(e["subject"]) and e["subject"] != CONTROL]
    if lines:
        head = json.dumps({"schema": SCHEMA, "metric": suite.metrics[0].name,
                           "compiler": document["machine"].get("compiler", "unknown")})
        path.write_text(f'{head[:-1]}, "figures": [\n ' + ",\n ".join(lines) + "\n]}\n")
    return len(lines)


def compare(suite, document: dict, committed: dict, tolerance: int, console) -> int:
    """Prints the comparison; returns 1 if a count increased or could not be measured."""
    figures = Figures(suite, document)
    skipped = {(e["subject"], tuple(sorted(e["params"].items()))) for e in document["skipped"]
               if e["suite"] == suite.name}
    table = Table(title="instructions per event compared with the committed counts")
    for head in ("subject", "cell", "committed", "now", "change", ""):
        table.add_column(head, justify="right" if head in ("committed", "now", "change")
                         else "left")
    failures, compared = 0, 0
    for each in committed["figures"]:
        subject, params, before = each["subject"], each["params"], each["value"]
        now = figures.value(params, subject, suite.metrics[0].name, "min")
        cell = suite.describe(params)
        if now is None:
            failed = (subject, ()) in skipped or (subject, tuple(sorted(params.items()))) in skipped
            failures += failed
            state = "[bold red]could not be measured" if failed else "not requested"
            table.add_row(subject, cell, f"{before:,}", "", "", state)
            continue
        compared += 1
        share = int(before * TOLERANCE_SHARE) if before >= LARGE_COUNT else 0
        worse = now > before + max(tolerance, share)
        failures += worse
        state = "[bold red]worse" if worse else "better: record it" if now < before else "same"
        table.add_row(subject, cell, f"{before:,}", f"{now:,}", f"{now - before:+,}", state)
    console.print(table)
    if committed.get("compiler") != document["machine"].get("compiler"):
        console.print(f"the committed counts were made with {committed.get('compiler')}, this "
                      f"build with {document['machine'].get('compiler', 'an unknown compiler')}")
    if failures or not compared:
        console.print("gate: failed" if failures else "gate: failed: there was nothing to compare")
        return 1
    console.print("gate: passed")
    return 0

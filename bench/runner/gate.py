"""Hold Tambour's own figures against the last that were committed.

The file is small and made to be read in a diff: one line for each subject and cell.
"""

import json
from pathlib import Path

from rich.table import Table

from .figures import Figures
from .results import check_writable
from .subjects import is_ours

SCHEMA = 1
# Counts repeat to the unit, but a figure near a half may be rounded either way: with timeouts, a
# few instructions in ten thousand events depend on the clock.
TOLERANCE = 1


def add_options(parser) -> None:
    """--gate, --tolerance, --record."""
    parser.add_argument("--gate", type=Path, metavar="FILE",
                        help="instructions: exit 1 when ours got worse than in FILE")
    parser.add_argument("--tolerance", type=int, metavar="N",
                        help=f"instructions: how many more are no worse (default {TOLERANCE})")
    parser.add_argument("--record", type=Path, metavar="FILE",
                        help="instructions: write our figures to FILE")


def check_options(options, chosen: bool) -> None:
    """ValueError for a gate that can't be read or options without their suite or gate."""
    given = [name for name in ("gate", "tolerance", "record")
             if getattr(options, name) is not None]
    if given and not chosen:
        raise ValueError(f"--{given[0]} belongs to the suite instructions")
    if options.tolerance is not None:
        if options.gate is None:
            raise ValueError("--tolerance belongs to --gate FILE")
        if options.tolerance < 0:
            raise ValueError("--tolerance is a number of instructions, not below 0")
    if options.gate is not None:
        read(options.gate)
    if options.record is not None:
        if not options.record.parent.is_dir():
            raise ValueError(f"--record {options.record}: there is no such directory")
        check_writable(options.record)


def conclude(suite, document: dict, options, console) -> int:
    """Record and compare as the options say; 1 when the gate is shut."""
    status = 0
    if options.gate is not None:
        status = compare(suite, document, read(options.gate),
                         TOLERANCE if options.tolerance is None else options.tolerance, console)
    if options.record is not None:
        count = record(suite, document, options.record)
        console.print(f"recorded {count} figures", highlight=False)
        if not count:
            return 1
    return status


def read(path: Path) -> dict:
    """A file that `record` wrote; ValueError says what is wrong with it."""
    try:
        told = json.loads(path.read_text())
        sound = told["schema"] == SCHEMA and all(
            isinstance(each["value"], int) and isinstance(each["params"], dict)
            and isinstance(each["subject"], str) for each in told["figures"])
    except OSError as error:
        raise ValueError(f"--gate {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound or not told["figures"]:
        raise ValueError(f"--gate {path}: not a file that --record wrote")
    return told


def record(suite, document: dict, path: Path) -> int:
    """Write ours; returns how many figures there were. An empty record is not written."""
    lines = [json.dumps({"subject": e["subject"], "backend": e["backend"], "params": e["params"],
                         "value": round(e["min"])})
             for e in Figures(suite, document).entries if is_ours(e["subject"])]
    if lines:
        head = json.dumps({"schema": SCHEMA, "metric": suite.metrics[0].name,
                           "compiler": document["machine"].get("compiler", "unknown")})
        path.write_text(f'{head[:-1]}, "figures": [\n ' + ",\n ".join(lines) + "\n]}\n")
    return len(lines)


def compare(suite, document: dict, held: dict, tolerance: int, console) -> int:
    """Print the table; 1 when a figure got worse or one that was played is missing."""
    figures = Figures(suite, document)
    asked = {(e["subject"], tuple(sorted(e["params"].items()))) for e in document["left_out"]
             if e["suite"] == suite.name}
    table = Table(title="instructions per event against the committed figures")
    for head in ("subject", "cell", "held", "now", "change", ""):
        table.add_column(head, justify="right" if head in ("held", "now", "change") else "left")
    worse, compared = 0, 0
    for each in held["figures"]:
        subject, params, was = each["subject"], each["params"], each["value"]
        now = figures.value(params, subject, suite.metrics[0].name, "min")
        cell = suite.describe(params)
        if now is None:
            broken = (subject, ()) in asked or (subject, tuple(sorted(params.items()))) in asked
            worse += broken
            verdict = "[bold red]could not be measured" if broken else "not played"
            table.add_row(subject, cell, f"{was:,}", "", "", verdict)
            continue
        compared += 1
        bad = now > was + tolerance
        worse += bad
        verdict = "[bold red]worse" if bad else "better: record it" if now < was else "same"
        table.add_row(subject, cell, f"{was:,}", f"{now:,}", f"{now - was:+,}", verdict)
    console.print(table)
    if held.get("compiler") != document["machine"].get("compiler"):
        console.print(f"the committed figures are those of {held.get('compiler')}, this build is "
                      f"{document['machine'].get('compiler', 'of an unknown compiler')}'s")
    if worse or not compared:
        console.print("gate: shut" if worse else "gate: shut: nothing to compare was measured")
        return 1
    console.print("gate: open")
    return 0

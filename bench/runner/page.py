"""The report: one HTML page without scripts or external files, computed from the document alone.

It opens with the verdict, then lists what limits it, then shows each suite. Colours are CSS
variables, in the charts too, so that the page follows the reader's light or dark scheme. No element
is wider than the page, from 400 px on.
"""

from html import escape
from pathlib import Path

from . import formatting, intervals, palette, tables
from .estimates import CONFIDENCE, EQUAL_MARGIN, Verdict
from .figures import Figures, Headline, comparisons, headlines, overall
from .subjects import CONTROL, OURS, is_ours, is_peer
from .suite import Suite

_FACTS = {
    "time": "measured", "kernel": "kernel", "arch": "architecture", "cpu": "processor",
    "cores": "processors allowed", "cores_of_machine": "processors of the machine",
    "pinned_cpu": "measured on CPU", "memory_mib": "memory, MiB", "governor": "governor",
    "virtualised": "virtual machine", "open_files_limit": "limit of open files",
    "compiler": "compiler", "build_type": "build type", "cxx_flags": "flags",
    "git_revision": "revision", "load_at_start": "load before the run",
    "steal_percent": "steal time, %", "seconds": "duration of the run, s", "samples": "samples",
    "samples_repeated": "samples measured again", "samples_dropped": "samples dropped",
}
# Verdicts must be readable on paper and on a dark screen.
_SCHEMES = (":root{--tint:#f4f1ec;--good:#0b6b3a;--bad:#a8321a;--even:#33506e;--open:#6b6f76}"
            "@media(prefers-color-scheme:dark){:root{--tint:#1f242c;--good:#6fd79b;--bad:#ff9b85;"
            "--even:#9dc1e8;--open:#a2abb8}}")
_ENDS = ("peer better", "Tambour better")


def render(document: dict, suites: dict[str, Suite], drawn: dict[str, list]) -> str:
    """The page. `drawn` holds the charts of each suite."""
    found = {each.figures.suite.name: each for each in headlines(document, suites)}
    shown = [Figures(suite, document) for suite in suites.values()]
    shown = [figures for figures in shown if figures.entries]
    css = (Path(__file__).parent / "report.css").read_text()
    body = [_verdict(list(found.values())), _caveats(document, list(found.values()), suites)]
    body += [_suite(figures, drawn.get(figures.suite.name, [])) for figures in shown]
    body += [_machine(document)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Tambour: benchmarks</title>\n<style>{palette.stylesheet()}{_SCHEMES}\n{css}"
        "</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n")


# The verdict and its limits.


def verdict_sentence(found: list[Headline]) -> str:
    """The result of a run in one sentence."""
    if not found:
        return "No comparison of Tambour with a peer was measured."
    number = {each: sum(h.verdict == each for h in found) for each in Verdict}
    parts = [f"{words} {number[each]}" for each, words in (
        (Verdict.FASTER, "beats it in"), (Verdict.EQUAL, "equals it in"),
        (Verdict.SLOWER, "loses in")) if number[each]]
    if number[Verdict.UNDECIDED]:
        parts.append(f"{number[Verdict.UNDECIDED]} undecided")
    noun = formatting.count(len(found), "suite")
    return f"Tambour against the best peer in {noun}: {', '.join(parts)}."


def _verdict(found: list[Headline]) -> str:
    out = ["<h1>Tambour benchmarks</h1>",
           f'<p class="lead">{escape(verdict_sentence(found))}</p>']
    if not found:
        return "\n".join(out)
    rows = [intervals.Row(each.figures.suite.title, f"best peer: {each.peer}", each.estimate,
                          each.verdict.value, each.phrase, _detail(each)) for each in found]
    out += [intervals.render(rows, *_ENDS),
            '<p class="soft">Each dot is the best peer’s time, memory or instruction count divided '
            "by Tambour’s: 1.5 means that the peer takes 1.5 times as much. The bar is the "
            f"{CONFIDENCE:.0%} confidence interval.</p>"]
    return "\n".join(out)


def _detail(each: Headline) -> str:
    text = formatting.ratio(each.estimate.ratio)
    if each.estimate.low is not None and not each.figures.suite.exact:
        text += f" ({formatting.interval(each.estimate)})"
    return text + (f"; {each.reason}" if each.reason else "")


def _caveats(document: dict, found: list[Headline], suites: dict[str, Suite]) -> str:
    machine = document["machine"]
    cpu = f" ({escape(str(machine['cpu']))})" if machine.get("cpu") else ""
    items = [
        f"All subjects ran interleaved on one machine{cpu}. Compare the ratios; absolute values "
        "hold for this machine only.",
        "A ratio above 1 always means that Tambour is better: the ratio of a rate, such as "
        "messages per second, is inverted.",
        "A suite with several cells counts with their geometric mean. The sections below show each "
        "cell.",
        f"<b>Equal</b>: the whole interval is within {EQUAL_MARGIN:.0%} of 1. <b>Undecided</b>: "
        "the interval includes 1, there were too few rounds, or the A/A control (Tambour "
        "against itself) differs by as much as the peer.",
    ]
    controls = [each.control.deviation for each in found if each.control]
    if controls:
        items.append(f"The A/A controls of the suites differ by at most {max(controls):.1%}.")
    if "samples" in machine:
        items.append(f"{machine['samples']:,} samples; {machine['samples_repeated']:,} disturbed "
                     f"ones were measured again, {machine['samples_dropped']:,} were dropped "
                     "because of steal time or involuntary context switches.")
    items += [escape(note) for note in machine.get("notes", [])]
    skipped = [f"<li>{escape(line)}</li>"
               for line in formatting.skipped_lines(document["skipped"], suites)]
    if skipped:
        items.append(f"Skipped:<ul>{''.join(skipped)}</ul>")
    listed = "".join(f"<li>{item}</li>" for item in items)
    return (f"<h2>How to read it</h2>\n<ul>{listed}</ul>\n<p>To repeat it:</p>\n"
            f"<pre>{escape(document['command'])}</pre>")


# Suites.


def _suite(figures: Figures, drawn: list) -> str:
    suite = figures.suite
    out = [f'<h2 id="{suite.name}">{escape(suite.title)}</h2>', f"<p>{escape(suite.what)}</p>"]
    constant = {n: figures.cells[0][n] for n in figures.constant()}
    cells = f"{len(figures.cells)} cells. " if len(figures.cells) > 1 else ""
    if constant and suite.describe(constant) != suite.title:
        where = "All cells" if len(figures.cells) > 1 else "Cell"
        cells += f"{where}: {suite.describe(constant)}."
    out.append(f'<p class="soft">{escape(suite.how)} {escape(cells)}</p>')
    rows = _rows(figures)
    if rows:
        metrics = formatting.enumerated([m.title for m in suite.decisive_metrics])
        out += [f"<h3>Ratio to Tambour: {escape(metrics)}</h3>", intervals.render(rows, *_ENDS)]
    out += _charts(figures, drawn)
    out.append(f"<h3>Cells</h3>{tables.render(figures)}")
    further = [tables.plain(*each) for each in suite.tables(figures)]
    if further:
        out.append(f'<div class="abreast">{"".join(further)}</div>')
    return "\n".join(out)


def _rows(figures: Figures) -> list[intervals.Row]:
    """A row for each subject but Tambour; the control last."""
    rows = []
    control = overall(figures, CONTROL)[0]
    total = len(comparisons(figures))
    for name in (*figures.subjects, CONTROL):
        estimate, count = overall(figures, name)
        if name == OURS or estimate is None:
            continue
        kind, word = "reference", "reference"
        if is_peer(name):
            each = Headline(figures, name, estimate, control, {})
            kind, word = each.verdict.value, f"Tambour {each.phrase}"
        elif is_ours(name):
            word = "A/A control" if name == CONTROL else "Tambour’s own"
        note = "" if count == total else f"{count} of {total} comparisons"
        text = formatting.ratio(estimate.ratio)
        if estimate.low is not None and not figures.suite.exact:
            text += f" ({formatting.interval(estimate)})"
        rows.append(intervals.Row(name, note, estimate, kind, text, word))
    return rows


def _charts(figures: Figures, drawn: list) -> list[str]:
    if not drawn:
        return []
    out = []
    seen = dict.fromkeys(name for chart in drawn for name in chart.subjects)
    if any(not chart.wide for chart in drawn):
        statistic = "minimum" if figures.suite.quoted == "min" else "median"
        text = f"Each point is the {statistic} of the rounds."
        clipped = [name for name in seen if any(name in chart.clipped for chart in drawn)]
        if clipped:
            text += f" The axis is not extended for {formatting.enumerated(clipped)}."
        out += [_legend(list(seen)), f'<p class="soft">{text}</p>']
    for section in dict.fromkeys(chart.section for chart in drawn):
        title = formatting.sentence_case(section)
        out += [f"<h3>{escape(title)}</h3>"] if section else []
        out.append('<div class="charts">')
        out += [_figure(chart) for chart in drawn if chart.section == section]
        out.append("</div>")
    return out


def _figure(chart) -> str:
    return f"<figure>{chart.svg}<figcaption>{chart.name}.png, .svg</figcaption></figure>"


def _legend(subjects: list[str]) -> str:
    items = []
    for name in subjects:
        look = palette.look(name)
        colour = f"var(--c-{look.colour})"
        dash = f' stroke-dasharray="{" ".join(f"{d * 1.6:g}" for d in look.dash)}"' \
            if look.dash else ""
        fill = colour if look.width > 1.2 else "var(--paper)"
        items.append(
            f'<li><svg viewBox="-18 -7 36 14" aria-hidden="true"><path d="M-18 0H18" '
            f'stroke="{colour}" stroke-width="{look.width}"{dash}/><g fill="{fill}" '
            f'stroke="{colour}">{palette.OUTLINES[look.marker]}</g></svg>{escape(name)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


# The machine.


def _machine(document: dict) -> str:
    machine = document["machine"]
    rows = "".join(f"<dt>{title}</dt><dd>{escape(_fact(machine[name]))}</dd>"
                   for name, title in _FACTS.items() if name in machine)
    versions = {}
    for entry in document["results"]:
        text = entry["version"] + (f", {entry['backend']}" if entry["backend"] else "")
        versions.setdefault(entry["subject"], text)
    rows += "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
                    for name, text in versions.items() if text and name != CONTROL)
    return f'<h2>Machine and versions</h2><dl class="facts">{rows}</dl>'


def _fact(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)

"""The report: one HTML page that needs nothing but itself, made from the document alone.

No script and no file beside it: it can be mailed, or kept for ten years. Charts are SVG whose
colours are the page's CSS variables, so the whole follows the reader's light or dark.
"""

from html import escape
from pathlib import Path

from . import palette, tables, words
from .figures import Figures, headlines
from .subjects import is_ours
from .suite import Suite

_FACTS = {
    "time": "measured", "kernel": "kernel", "arch": "architecture", "cpu": "processor",
    "cores": "cores for this run", "cores_of_machine": "cores of the machine",
    "pinned_cpu": "measured on CPU", "memory_mib": "memory, MiB", "governor": "governor",
    "virtualised": "virtual machine", "open_files_limit": "limit of open files",
    "compiler": "compiler", "build_type": "build", "cxx_flags": "flags",
    "git_revision": "revision", "load_at_start": "load before the run",
    "steal_percent": "taken by other machines, %", "seconds": "the run took, s",
}
# Good and bad must hold on paper and on a dark screen.
_SCHEMES = (":root{--tint:#f4f1ec;--good:#0b6b3a;--bad:#a8321a}"
            "@media(prefers-color-scheme:dark){:root{--tint:#1f242c;--good:#6fd79b;--bad:#ff9b85}}")


def render(document: dict, suites: dict[str, Suite], drawn: dict[str, list]) -> str:
    """The page. `drawn` are the charts of each suite; a suite without any has only tables."""
    shown = [suite for suite in suites.values()
             if any(e["suite"] == suite.name for e in document["results"])]
    css = (Path(__file__).parent / "report.css").read_text()
    body = [_head(document, shown), _headlines(document, shown)]
    body += [_suite(Figures(suite, document), drawn.get(suite.name, [])) for suite in shown]
    body += [_left_out(document, suites), _machine(document)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Tambour: benchmarks</title>\n<style>{palette.stylesheet()}{_SCHEMES}\n{css}"
        "</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n")


def _head(document: dict, shown: list[Suite]) -> str:
    machine = document["machine"]
    names = words.listed([words.within_a_sentence(suite.title) for suite in shown]) \
        if shown else "nothing"
    notes = "".join(f"<li>{escape(note)}</li>" for note in machine.get("notes", []))
    notes = f'<div class="notes"><ul>{notes}</ul></div>' if notes else ""
    return (
        "<h1>Tambour and its peers</h1>\n"
        f'<p class="lead">Measured: {escape(names)}, on Tambour, on other event loops and on bare '
        "system calls (<i>floor</i>), each a program of its own. All ran interleaved, round by "
        "round, on one core of one machine, a server’s clients and threads that post on the "
        "others. So read the ratios: absolute times are this machine’s.</p>\n"
        f'<p class="soft">{escape(str(machine.get("cpu", "")))}, '
        f'{escape(str(machine.get("kernel", "")))}. To repeat it:</p>\n'
        f'<pre>{escape(document["command"])}</pre>\n{notes}')


def _headlines(document: dict, shown: list[Suite]) -> str:
    rows = [(suite, line) for suite in shown for line in headlines(Figures(suite, document))]
    if not rows:
        return ""
    known = dict.fromkeys(s.name for suite in shown for s in suite.subjects)
    used = {name for _, line in rows for name in line.ratios}
    columns = [name for name in known if name in used and not is_ours(name)]
    columns += sorted(used - set(known))
    out = ["<h2>Tambour’s figure by each other’s</h2>",
           "<p>Ratio of medians, geometric mean over the cells; below it the least and the "
           "greatest. For times and bytes held, below 1.00 means that Tambour takes less; for "
           "what is better when it is more, and says so, above 1.00 that it does more. What is not "
           "coloured is within the noise, or its noise is unknown.</p>",
           '<div class="scroll"><table class="wrap"><thead><tr><th>suite and metric</th>',
           *(f"<th>{escape(name)}</th>" for name in columns), "</tr></thead><tbody>"]
    for suite, line in rows:
        title = line.words if line.words.startswith(suite.name) else f"{suite.name}: {line.words}"
        kind = "" if line.metric.better == "less" else ", more is better"
        unknown = f"<small>{escape(words.unknown_noise(line))}</small>" if line.unknown else ""
        out.append(f"<tr><th>{escape(title)}{kind}{unknown}</th>")
        out += [_headline(line, name) for name in columns]
        out.append("</tr>")
    return "\n".join(out) + "</tbody></table></div>"


def _headline(line, subject: str) -> str:
    if subject not in line.ratios:
        return "<td>–</td>"
    mean, least, most = line.ratios[subject]
    mark = {"gain": ' class="best"', "loss": ' class="worse"', "even": ""}[line.verdict(subject)]
    span = "" if least == most else f"<small>{words.ratio(least)}–{words.ratio(most)}</small>"
    return f"<td{mark}>{words.ratio(mean)}{span}</td>"


def _suite(figures: Figures, drawn: list) -> str:
    suite = figures.suite
    out = [f'<h2 id="{suite.name}">{escape(suite.title)}</h2>',
           f'<p>{escape(suite.what)} <span class="soft">{escape(suite.how)}</span></p>']
    constant = {n: figures.cells[0][n] for n in figures.constant()}
    if constant and suite.describe(constant) != suite.title:
        out.append(f'<p class="soft">In every cell: {escape(suite.describe(constant))}.</p>')
    if drawn:
        seen = dict.fromkeys(name for chart in drawn for name in chart.subjects)
        if any(not chart.wide for chart in drawn):
            what = "Each point is the minimum of the rounds." if suite.quoted == "min" \
                else "Each point is the median of the rounds."
            aside = [name for name in seen if any(name in chart.aside for chart in drawn)]
            if aside:
                what += f" Where {words.listed(aside)} leave the scale, they leave the frame."
            out += [_legend(list(seen)), f'<p class="soft">{what}</p>']
        for section in dict.fromkeys(chart.section for chart in drawn):
            title = section[:1].upper() + section[1:]
            out += [f"<h3>{escape(title)}</h3>"] if section else []
            out.append('<div class="charts">')
            out += [_figure(chart) for chart in drawn if chart.section == section]
            out.append("</div>")
    out.append(tables.render(figures))
    for caption, head, rows in suite.tables(figures):
        out.append(_plain_table(caption, head, rows))
    return "\n".join(out)


def _figure(chart) -> str:
    kind = ' class="bars"' if chart.wide else ""
    return (f"<figure{kind}>{chart.svg}<figcaption>{chart.name}.png, .svg</figcaption></figure>")


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


def _plain_table(caption: str, head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th>{escape(row[0])}</th>" + "".join(f"<td>{escape(c)}</td>" for c in row[1:])
        + "</tr>" for row in rows)
    return (f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>{top}</tr>'
            f"</thead><tbody>{body}</tbody></table></div>")


def _left_out(document: dict, suites: dict[str, Suite]) -> str:
    lines = words.left_out_lines(document["left_out"], suites)
    if not lines:
        return ""
    rows = "".join(f"<tr><th>{escape(subject)}</th><td>{escape(suite)}</td>"
                   f'<td class="text">{escape(where)}</td><td class="text">{escape(why)}</td></tr>'
                   for suite, subject, where, why in lines)
    return ('<h2>Left out</h2><div class="scroll"><table><thead><tr><th>subject</th><th>suite</th>'
            f'<th>cells</th><th>reason</th></tr></thead><tbody>{rows}</tbody></table></div>')


def _machine(document: dict) -> str:
    machine = document["machine"]
    rows = "".join(f"<dt>{title}</dt><dd>{escape(_fact(machine[name]))}</dd>"
                   for name, title in _FACTS.items() if name in machine)
    versions = {}
    for entry in document["results"]:
        told = entry["version"] + (f", {entry['backend']}" if entry["backend"] else "")
        versions.setdefault(entry["subject"], told)
    rows += "".join(f"<dt>{escape(name)}</dt><dd>{escape(told)}</dd>"
                    for name, told in versions.items() if told)
    return f'<h2>The machine</h2><dl class="facts">{rows}</dl>'


def _fact(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)

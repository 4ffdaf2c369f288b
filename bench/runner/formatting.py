"""Numbers and lists as text, for the page and the terminal."""

from .estimates import Estimate


def quantity(value: float | None) -> str:
    """Counts and large numbers without decimals, else three significant digits."""
    if value is None:
        return "–"
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    """Two decimals, fewer for a ratio that is far from one."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def interval(estimate: Estimate | None) -> str:
    """The bounds of the interval: "1.10–1.14"."""
    return f"{ratio(estimate.low)}–{ratio(estimate.high)}" if estimate else "–"


def duration(seconds: float) -> str:
    """Seconds as "45 s" or "4 min 30 s"."""
    seconds = max(1, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min {seconds % 60} s" if seconds % 60 else f"{seconds // 60} min"


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def enumerated(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence_case(text: str) -> str:
    """The first letter as a capital, the others as they are."""
    return text[:1].upper() + text[1:]


def skipped_lines(entries: list[dict], suites: dict) -> list[str]:
    """The entries of `skipped`, those with the same reason in one line."""
    where: dict[tuple[str, str], dict[str, None]] = {}
    for entry in entries:
        suite = suites.get(entry["suite"])
        cell = f" ({suite.describe(entry['params'])})" if suite and entry["params"] else ""
        found = where.setdefault((entry["subject"], entry["reason"]), {})
        found[entry["suite"] + cell] = None
    lines: dict[tuple[str, str], list[str]] = {}
    for (subject, reason), places in where.items():
        lines.setdefault((_places(list(places)), reason), []).append(subject)
    return [f"{enumerated(subjects)}, {places}: {reason}"
            for (places, reason), subjects in lines.items()]


def _places(names: list[str]) -> str:
    """One suite or cell by its name, more by their suites."""
    if len(names) == 1:
        return f"in {names[0]}"
    suites = list(dict.fromkeys(name.split(" (")[0] for name in names))
    cells = f"{len(names)} cells of " if any("(" in name for name in names) else ""
    return f"in {cells}{enumerated(suites)}"

"""Numbers as people read them, in the report and on the terminal."""

from .subjects import BY_HAND


def quantity(value: float | None) -> str:
    """Counts in full; of measured numbers three digits, or all before the point."""
    if value is None:
        return "–"
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    """Two decimals, fewer for what is far from one."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def within_a_sentence(title: str) -> str:
    """A title without its capital, unless that is part of a name: I/O, AnyEvent."""
    first = title.split()[0]
    is_name = any(letter.isupper() for letter in first[1:])
    return title if is_name else title[0].lower() + title[1:]


def listed(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def unknown_noise(line) -> str:
    """Why a headline has no verdict on some subjects."""
    rivals = [name for name in line.ratios if name not in BY_HAND]
    whom = "" if line.unknown == rivals else f" for {listed(line.unknown)}"
    return f"noise unknown{whom}: fewer than three samples"


def left_out_lines(entries: list[dict], suites: dict) -> list[tuple[str, str, str, str]]:
    """Entries of `left_out` as (suite, subjects, cells, reason), alike ones in one line."""
    cells: dict[tuple[str, str, str], list[str]] = {}
    for entry in entries:
        suite = suites.get(entry["suite"])
        where = suite.describe(entry["params"]) if suite and entry["params"] else ""
        cells.setdefault((entry["suite"], entry["subject"], entry["why"]), []).append(where)
    lines: dict[tuple[str, str, str], list[str]] = {}
    for (suite, subject, why), each in cells.items():
        each = [cell for cell in dict.fromkeys(each) if cell]
        where = "all cells" if not each else each[0] if len(each) == 1 else f"{len(each)} cells"
        lines.setdefault((suite, where, why), []).append(subject)
    return [(suite, listed(subjects), where, why)
            for (suite, where, why), subjects in lines.items()]

"""The look of each subject, the same in every chart: colour, marker, line.

Hues are those of Okabe and Ito, which colour-blind readers can distinguish, darkened for paper and
lightened for a dark screen. Markers and dashes differ too. Tambour's backends share its hue.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How a subject is drawn. `colour` names the CSS variable; light and dark are its values."""

    colour: str
    light: str
    dark: str
    marker: str  # in matplotlib's notation
    dash: tuple[float, ...] = ()
    width: float = 1.6


_OURS = ("tambour", "#c2410c", "#ff9255")
_LOOKS = {
    "tambour": Look(*_OURS, "o", width=3.0),
    "tambour-epoll": Look(*_OURS, "s", (4, 1.5), 1.1),
    "tambour-uring": Look(*_OURS, "^", (1.5, 1.5), 1.1),
    "tambour-poll": Look(*_OURS, "v", (6, 1.5, 1.5, 1.5), 1.1),
    "tambour-select": Look(*_OURS, "<", (1, 2.5), 1.1),
    "tambour-spin": Look(*_OURS, "X", (3, 1), 1.4),
    "tambour-tasks": Look(*_OURS, "P", (5, 1.5), 1.4),
    "tambour-libev": Look(*_OURS, "p", (8, 2), 1.4),
    "tambour-libev-emulation": Look(*_OURS, "p", (3, 2), 1.1),
    "tambour-libevent": Look(*_OURS, "D", (8, 2, 1.5, 2), 1.4),
    "tambour-libevent-published": Look(*_OURS, "D", (2, 2), 1.1),
    "floor": Look("floor", "#7a808a", "#9aa1ac", "d", (2, 2)),
    "epoll": Look("epoll", "#20262e", "#e8ebef", "x", (5, 2)),
    "mutex": Look("epoll", "#20262e", "#e8ebef", "x", (5, 2)),
    "iouring": Look("epoll", "#20262e", "#e8ebef", "s", (5, 2)),
    "libev": Look("libev", "#0067a3", "#56b4e9", "s"),
    "libev-published": Look("libev", "#0067a3", "#56b4e9", "s", (3, 2), 1.1),
    "libev-emulation": Look("libev", "#0067a3", "#56b4e9", "p", (6, 2), 1.1),
    "libevent": Look("libevent", "#007d5a", "#2fcb9d", "D"),
    "libevent-published": Look("libevent", "#007d5a", "#2fcb9d", "D", (3, 2), 1.1),
    "libuv": Look("libuv", "#b0458a", "#f09fcb", "^"),
    "asio": Look("asio", "#8a6a00", "#f0d447", "P"),
    "boost": Look("boost", "#b3261e", "#ff8a80", "<"),
    "moodycamel": Look("moodycamel", "#4d6b00", "#b5d94c", "h"),
    "muduo": Look("muduo", "#5b3fa0", "#b8a2f2", "v"),
    "evpp": Look("evpp", "#7a4a2b", "#d29b74", "X"),
    "evpp-boost": Look("evpp", "#7a4a2b", "#d29b74", "<", (3, 2), 1.1),
    "evpp-moodycamel": Look("evpp", "#7a4a2b", "#d29b74", "h", (6, 2), 1.1),
    "nginx": Look("nginx", "#2e6f2f", "#7ddb80", ">"),
    "hitch": Look("hitch", "#94503f", "#e8a08c", "h"),
    "h2o": Look("h2o", "#0067a6", "#56b4ec", "s"),
    "hyper": Look("hyper", "#5b3fa3", "#b8a2f5", "v"),
    "drogon": Look("drogon", "#7a4a2d", "#d29b76", "X"),
    "go": Look("go", "#00707f", "#4fd0e0", "<"),
    "uwebsockets": Look("uwebsockets", "#0067a5", "#56b4eb", "s"),
    "libwebsockets": Look("libwebsockets", "#007d5c", "#2fcb9f", "D"),
    "gws": Look("gws", "#007080", "#4fd0e1", "<"),
    "coder": Look("gws", "#007080", "#4fd0e1", "h", (5, 2)),
    "tungstenite": Look("tungstenite", "#5b3fa2", "#b8a2f4", "v"),
}
# For subjects that only one suite has. They differ from the colours above in the last digit,
# because the SVG is themed by replacing values.
_SPARE = (
    Look("spare1", "#0067a4", "#56b4ea", "s", (6, 2)),
    Look("spare2", "#007d5b", "#2fcb9e", "D", (6, 2)),
    Look("spare3", "#b0458b", "#f09fcc", "^", (6, 2)),
    Look("spare4", "#8a6a01", "#f0d448", "P", (6, 2)),
    Look("spare5", "#5b3fa1", "#b8a2f3", "v", (6, 2)),
    Look("spare6", "#7a4a2c", "#d29b75", "X", (6, 2)),
)

# Marker outlines in a box from -5 to 5, for the page's legend.
OUTLINES = {
    "o": '<circle r="4.2"/>',
    "s": '<rect x="-3.7" y="-3.7" width="7.4" height="7.4"/>',
    "^": '<path d="M0-4.6 4.4 3.6H-4.4Z"/>',
    "v": '<path d="M0 4.6 4.4-3.6H-4.4Z"/>',
    "<": '<path d="M-4.6 0 3.6 4.4V-4.4Z"/>',
    ">": '<path d="M4.6 0-3.6 4.4V-4.4Z"/>',
    "D": '<path d="M0-5 5 0 0 5-5 0Z"/>',
    "d": '<path d="M0-5 3 0 0 5-3 0Z"/>',
    "x": '<path d="M-3.6-3.6 3.6 3.6M-3.6 3.6 3.6-3.6" fill="none" stroke-width="2"/>',
    "P": '<path d="M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z"/>',
    "X": '<path d="M-4.4-2.2-2.2-4.4 0-2.2 2.2-4.4 4.4-2.2 2.2 0 4.4 2.2 2.2 4.4 0 2.2'
         '-2.2 4.4-4.4 2.2-2.2 0Z"/>',
    "p": '<path d="M0-4.6 4.4-1.4 2.7 3.7H-2.7L-4.4-1.4Z"/>',
    "h": '<path d="M0-4.8 4.2-2.4V2.4L0 4.8-4.2 2.4V-2.4Z"/>',
}

# The other colours: (light, dark), by CSS variable.
PAGE = {
    "paper": ("#ffffff", "#14171c"),
    "ink": ("#1b1f24", "#e6e9ee"),
    "soft": ("#57606a", "#a2abb8"),
    "line": ("#d5dae1", "#353c47"),
}


def look(subject: str) -> Look:
    """The look of a subject; one that is not in the list always gets the same spare one."""
    if subject in _LOOKS:
        return _LOOKS[subject]
    return _SPARE[sum(subject.encode()) % len(_SPARE)]


def looks() -> list[Look]:
    """Each colour once."""
    return list({each.colour: each for each in (*_LOOKS.values(), *_SPARE)}.values())


def variables(dark: bool) -> str:
    """All colours as CSS variables."""
    pairs = [(name, both[dark]) for name, both in PAGE.items()]
    pairs += [(f"c-{each.colour}", each.dark if dark else each.light) for each in looks()]
    return ";".join(f"--{name}:{value}" for name, value in pairs)


def stylesheet() -> str:
    """The variables for both schemes."""
    return (f":root{{color-scheme:light dark;{variables(False)}}}"
            f"@media(prefers-color-scheme:dark){{:root{{{variables(True)}}}}}")

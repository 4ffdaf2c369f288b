"""Interval plots as HTML: a row for each comparison, with its median, interval and verdict.

Plain elements positioned in per cent, not an image: text keeps its size on a narrow screen, wraps,
and can be selected. The axis is logarithmic, so that 2 and 1/2 are equally far from 1.
"""

import math
from dataclasses import dataclass
from html import escape

from .estimates import Estimate

# Rows beyond these bounds are drawn at the edge, so that differences near 1 stay visible.
AXIS_MAX = 4.0
AXIS_MIN_WIDTH = 1.25
TICKS = (0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
TICK_DISTANCE = 0.11  # of the axis


@dataclass(frozen=True)
class Row:
    """One comparison. `kind` is a Verdict, or "reference" for a row without one."""

    name: str
    note: str
    estimate: Estimate
    kind: str
    text: str
    detail: str


class Axis:
    """A logarithmic axis that contains 1 and, up to its bounds, all intervals."""

    def __init__(self, estimates: list[Estimate]) -> None:
        ends = [end for each in estimates for end in (each.low or each.ratio,
                                                      each.high or each.ratio)]
        low = min([1 / AXIS_MIN_WIDTH, *(end / 1.06 for end in ends)])
        high = max([AXIS_MIN_WIDTH, *(end * 1.06 for end in ends)])
        self._low = math.log(max(low, 1 / AXIS_MAX))
        self._high = math.log(min(high, AXIS_MAX))

    def position(self, value: float) -> float:
        """The place of a value between 0 and 1; values beyond the bounds are at the edge."""
        place = (math.log(value) - self._low) / (self._high - self._low)
        return min(1.0, max(0.0, place))

    def exceeds(self, value: float) -> bool:
        """Whether a value is beyond the bounds of the axis."""
        return not self._low <= math.log(value) <= self._high

    def ticks(self) -> list[float]:
        """The values to label: 1 first, then those with enough space."""
        kept: list[float] = []
        for tick in sorted(TICKS, key=lambda t: abs(math.log(t))):
            place = self.position(tick)
            if not self.exceeds(tick) and all(abs(place - self.position(other)) > TICK_DISTANCE
                                              for other in kept):
                kept.append(tick)
        return sorted(kept)


def render(rows: list[Row], below: str, above: str) -> str:
    """The plot. `below` and `above` say what values to the left and right of 1 mean."""
    axis = Axis([row.estimate for row in rows])
    ticks = "".join(f'<span style="left:{axis.position(tick):.1%}">{tick:g}</span>'
                    for tick in axis.ticks())
    lines = "".join(f'<i class="{"one" if tick == 1 else "tick"}" '
                    f'style="left:{axis.position(tick):.1%}"></i>' for tick in axis.ticks())
    body = "".join(_row(row, axis, lines) for row in rows)
    return (f'<div class="plot">{body}<div class="row axis"><div class="name"></div>'
            f'<div class="scale"><div class="ticks">{ticks}</div>'
            f'<div class="ends"><span>◂ {escape(below)}</span><span>{escape(above)} ▸</span></div>'
            f'</div><div class="result"></div></div></div>')


def _row(row: Row, axis: Axis, lines: str) -> str:
    estimate = row.estimate
    mark = ""
    if estimate.low is not None:
        left, right = axis.position(estimate.low), axis.position(estimate.high)
        mark = f'<b class="span" style="left:{left:.2%};width:{right - left:.2%}"></b>'
    beyond = " beyond" if axis.exceeds(estimate.ratio) else ""
    mark += f'<b class="dot{beyond}" style="left:{axis.position(estimate.ratio):.2%}"></b>'
    note = f"<small>{escape(row.note)}</small>" if row.note else ""
    detail = f"<small>{escape(row.detail)}</small>" if row.detail else ""
    return (f'<div class="row {row.kind}"><div class="name">{escape(row.name)}{note}</div>'
            f'<div class="track">{lines}{mark}</div>'
            f'<div class="result">{escape(row.text)}{detail}</div></div>')

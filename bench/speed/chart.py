"""bench/results.svg: how many times as fast as each peer, on a logarithmic scale, with the required figures."""

from __future__ import annotations

from html import escape
from math import log10
from statistics import median
from typing import NamedTuple

from speed import figures
from speed.works import OURS

WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 960, 450, 90, 62, 24, 14
LIGHT = "--back:#ffffff;--text:#1f2328;--soft:#59636e;--line:#d1d9e0;--good:#1a7f37;--slow:#bc4c00;--mark:#0969da"
DARK = "--back:#0d1117;--text:#f0f6fc;--soft:#9198a1;--line:#3d444d;--good:#3fb950;--slow:#db6d28;--mark:#4493f8"
STYLE = f"""svg{{{LIGHT};font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}}
@media (prefers-color-scheme:dark){{svg{{{DARK}}}}}
.back{{fill:var(--back)}}text{{fill:var(--text)}}.soft{{fill:var(--soft)}}.grid{{stroke:var(--line)}}.one{{stroke:var(--soft)}}
.good{{fill:var(--good)}}.slow{{fill:var(--slow)}}.mark{{stroke:var(--mark);stroke-width:2}}.head{{font-size:14px;font-weight:600}}"""


class Bar(NamedTuple):
    """``times`` as fast as the peer, and the required number, if any."""

    words: str
    times: float
    asked: float | None


def bars(works, results):
    """Yield a bar for each comparison with a figure."""
    for work in works:
        rounds = results.get(work.key, {}).get("rounds", [])
        for own, peer in work.pairs:
            found = figures.ratios(rounds, peer, own)
            if found and own != "5M traces":  # that one is no race
                how = own.removeprefix(OURS)
                words = f"{work.short}{'' if not how or how.startswith(',') else ', '}{how} / {peer}"
                yield Bar(words, median(found), _asked(work, own, peer))


def _asked(work, own, peer):
    """Return how many times as fast as the peer is required."""
    for ask in work.asks:
        if ask.quantity == "wall" and {ask.side, ask.over} == {own, peer}:
            return ask.limit if ask.least else 1 / ask.limit
    return None


def chart(works, results):
    """Return the chart, the same text for the same figures."""
    rows = list(bars(works, results))
    least, most = _ends([one for row in rows for one in (row.times, row.asked or row.times)])
    height = TOP + STEP * len(rows) + 16

    def x(times):
        return LEFT + (WIDTH - LEFT - RIGHT) * (log10(times) - least) / (most - least)

    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    label = 'role="img" aria-label="How many times as fast as its peers rag-eval is"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}>',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="6"/>',
        '<text class="head" x="16" y="24">How many times as fast as its peers</text>',
        '<text class="soft" x="16" y="42">right of 1 rag-eval is faster; the blue line is what was asked</text>',
        *(_tick(x(10**power), power, height) for power in range(least, most + 1)),
        *(part for place, row in enumerate(rows) for part in _bar(row, TOP + STEP * place, x)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _ends(times):
    """Return the powers of ten around all values and 1."""
    logs = [0.0, *map(log10, times)]
    least, most = int(min(logs) // 1), -int(-max(logs) // 1)
    return least, max(most, least + 1)


def _tick(place, power, height):
    words = f"{10**power:g} ×"
    kind = "one" if power == 0 else "grid"
    line = f'<line class="{kind}" x1="{place:.1f}" y1="{TOP - 8}" x2="{place:.1f}" y2="{height - 10}"/>'
    return f'{line}<text class="soft" x="{place:.1f}" y="{TOP - 12}" text-anchor="middle">{words}</text>'


def _short(times):
    """Return a number with two decimals below ten, otherwise without."""
    return f"{times:.2f}" if times < 10 else f"{times:,.0f}"


def _bar(row, y, x):
    begin, end = sorted((x(1), x(row.times)))
    kind = "good" if row.times >= (row.asked or 1) else "slow"
    yield f'<text x="{LEFT - 10}" y="{y + BAR - 3}" text-anchor="end">{escape(row.words)}</text>'
    yield f'<rect class="{kind}" x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR}" rx="2"/>'
    if row.asked:
        at = x(row.asked)
        yield f'<line class="mark" x1="{at:.1f}" y1="{y - 3}" x2="{at:.1f}" y2="{y + BAR + 3}"/>'
    yield f'<text x="{WIDTH - 16}" y="{y + BAR - 3}" text-anchor="end">{_short(row.times)} ×</text>'

"""Two kinds of pictures: bars in groups, and curves with named points."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#7a8ca3", "#4f7cac", "#3fa796", "#c98b3c", "#b4544f", "#6b5b95"]


def head(width, height, title):
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="60" y="18" font-size="14">{escape(title)}</text>',
    ]


def write(path, parts):
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(parts) + "\n</svg>\n")


def ticks(top):
    """Round numbers from 0 to top, four to ten of them."""
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(unit * f for f in (1, 0.5, 0.2) if top >= 4 * unit * f or f == 0.2)
    return [step * i for i in range(int(top / step) + 1)]


def text(x, y, what, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(what)}</text>'


def bars(path, title, unit, groups, names):
    """groups {name: [value per bar]}, names of the bars."""
    width, height, left, bottom = 760, 340, 60, 40
    top = max(max(v) for v in groups.values()) * 1.1
    scale = (height - bottom - 30) / top
    out = head(width, height + 40, title)
    for value in ticks(top):
        y = height - bottom - value * scale
        out.append(f'<path d="M{left} {y:.1f}H{width - 10}" stroke="#ddd"/>')
        out.append(text(left - 6, y + 4, f"{value:g}", "end"))
    step = (width - left - 10) / len(groups)
    for g, (name, values) in enumerate(groups.items()):
        bar = step * 0.8 / len(values)
        for i, value in enumerate(values):
            x = left + (g + 0.1) * step + i * bar
            y = height - bottom - value * scale
            out.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" '
                f'width="{bar * 0.9:.1f}" '
                f'height="{value * scale:.1f}" '
                f'fill="{COLOURS[i]}"/>'
            )
            out.append(text(x + bar * 0.45, y - 3, f"{value:.0f}", more=' font-size="10"'))
        out.append(text(left + (g + 0.5) * step, height - bottom + 16, name))
    x = left
    for i, name in enumerate(names):
        out.append(f'<rect x="{x}" y="{height + 8}" width="10" height="10" fill="{COLOURS[i]}"/>')
        out.append(text(x + 14, height + 17, name, "start"))
        x += 40 + 7 * len(name)
    out.append(text(16, height / 2, unit, more=f' transform="rotate(-90 16 {height / 2})"'))
    write(path, out)


def curves(path, title, axes, lines, points):
    """lines {name: [(x, y)]}, points [(name, x, y)]; axes their titles."""
    width, height, left, bottom = 640, 380, 60, 50
    everything = [q for line in lines.values() for q in line]
    everything += [(x, y) for _, x, y in points]
    x1 = max(x for x, _ in everything) * 1.12
    y1 = max(y for _, y in everything) * 1.12 or 1

    def place(x, y):
        return (
            left + (width - left - 20) * x / x1,
            height - bottom - (height - bottom - 40) * y / y1,
        )

    out = head(width, height, title)
    for value in ticks(x1):
        x, y = place(value, 0)
        out.append(text(x, height - bottom + 16, f"{value:g}"))
    for value in ticks(y1):
        x, y = place(0, value)
        out.append(f'<path d="M{left} {y:.1f}H{width - 20}" stroke="#ddd"/>')
        out.append(text(left - 6, y + 4, f"{value:g}", "end"))
    for i, (name, line) in enumerate(lines.items()):
        way = "L".join("%.1f %.1f" % place(*q) for q in line)
        out.append(f'<path d="M{way}" fill="none" stroke-width="2" stroke="{COLOURS[i + 1]}"/>')
        out.append(text(width - 20, 40 + 16 * i, name, "end", f' fill="{COLOURS[i + 1]}"'))
    for name, x, y in points:
        x, y = place(x, y)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[4]}"/>')
        out.append(text(x + 7, y - 6, name, "start"))
    out.append(text(width / 2, height - 12, axes[0]))
    out.append(text(16, height / 2, axes[1], more=f' transform="rotate(-90 16 {height / 2})"'))
    write(path, out)

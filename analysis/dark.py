"""Colours of the report in dark mode. Figures are drawn once, in light colours, and the page's CSS replaces the colours
in dark mode. Every colour that a figure uses must therefore be listed here with its replacement."""

PAPER, TEXT = "#15181C", "#E6E6E6"

# Colour in a figure -> colour in dark mode. Text and lines keep a contrast of at least 3 : 1, and Okabe and Ito's
# colours keep their hues.
FIGURES = {
    "#000000": TEXT,  # axes, ticks and markers; text inherits the figure's colour
    "#FFFFFF": PAPER,  # background of axes and of hollow markers
    "#DDDDDD": "#3A3F45",  # grid
    "#333333": PAPER,  # edges and hatches of filled bars
    "#555555": "#BDBDBD",  # limits
    "#B0B0B0": "#6B6B6B",  # points that do not count
    "#B34700": "#FF9248",  # warning for the CPU device
    "#0072B2": "#2A89C8",
    "#D55E00": "#D55E00",
    "#009E73": "#009E73",
    "#CC79A7": "#CC79A7",
    "#7F7F7F": "#8C8C8C",
    "#E69F00": "#E69F00",
    "#56B4E9": "#56B4E9",
    "#8A7F00": "#8A7F00",
    "#F0E442": "#F0E442",
    "#999999": "#999999",
    # Numbers in a heat map, whose cells are an image and do not change colour.
    "#111111": "#111111",
    "#F8F8F8": "#F8F8F8",
}


def figure_rules() -> str:
    """CSS that replaces the colours of inline SVG as matplotlib writes it: `style="fill: #0072b2"`, `fill="#0072b2"` in
    a hatch, and no attribute for a black fill. The selectors name no ancestor, because `<use>` draws the markers
    and the copies that it draws have no ancestors."""
    rules = [f"figure svg{{fill:{TEXT}}}"]
    for light, dark in FIGURES.items():
        if dark != light:
            colour = light.lower()
            rules += [
                f'[style*="{what}: {colour}"],[{what}="{colour}"]{{{what}:{dark}!important}}'
                for what in ("fill", "stroke")
            ]
    return "\n".join(rules)

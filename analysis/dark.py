"""The report on a dark screen. Figures are drawn once, in light colours; in dark the page's CSS exchanges them. So a
colour that a figure draws with must stand here, with what it becomes."""

PAPER, TEXT = "#15181C", "#E6E6E6"

# In a figure -> on a dark screen. Text and lines keep a contrast of 3 : 1 at least, Okabe and Ito's colours their hues.
FIGURES = {
    "#000000": TEXT,  # axes, ticks and marks; text has no colour of its own and takes the figure's
    "#FFFFFF": PAPER,  # behind the axes, and inside hollow marks
    "#DDDDDD": "#3A3F45",  # the grid
    "#333333": PAPER,  # edges and hatches of filled bars
    "#555555": "#BDBDBD",  # limits
    "#B0B0B0": "#6B6B6B",  # points that count nowhere
    "#B34700": "#FF9248",  # the CPU's warning
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
    # Numbers in a heat map: its cells are a picture and stay as they are, and so must these.
    "#111111": "#111111",
    "#F8F8F8": "#F8F8F8",
}


def figure_rules() -> str:
    """CSS that exchanges the colours of inline SVG as matplotlib writes it: `style="fill: #0072b2"`, in a hatch
    `fill="#0072b2"`, and nothing at all for black that is filled. The selectors name no ancestor: marks are drawn by
    `<use>`, and in its copy of them there is none."""
    rules = [f"figure svg{{fill:{TEXT}}}"]
    for light, dark in FIGURES.items():
        if dark != light:
            colour = light.lower()
            rules += [
                f'[style*="{what}: {colour}"],[{what}="{colour}"]{{{what}:{dark}!important}}'
                for what in ("fill", "stroke")
            ]
    return "\n".join(rules)

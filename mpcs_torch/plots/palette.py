"""The colours of all figures, from the palette of Okabe and Ito, which colour-blind readers can distinguish."""

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
AMBER, SKY, BLACK, WHITE = "#e69f00", "#56b4e9", "#000000", "#ffffff"
RED = "#b00020"
GREY, DARK_GREY, LIGHT_GREY, FAINT_GREY, GRID = "#8a8a8a", "#5f5f5f", "#cccccc", "#9a9a9a", "#ececec"

ON_DARK = {
    BLUE: "#4c9fe0",
    ORANGE: "#f28c3b",
    GREEN: "#3cc79b",
    PINK: "#e29cc4",
    AMBER: "#f2bd42",
    SKY: "#a6daff",
    BLACK: "#e8eaed",
    WHITE: "#16181d",
    RED: "#ff6b74",
    GREY: "#8b9099",
    DARK_GREY: "#b4b9c2",
    LIGHT_GREY: "#4a4f58",
    FAINT_GREY: "#7d838d",
    GRID: "#2b2f36",
}
"""The colours that replace them on a dark page."""

SYSTEMS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK)
"""The colours of the systems in one figure, in this order."""
TARGETS, NONTARGETS = ORANGE, BLUE
RELEASED, DANGEROUS = GREEN, RED
ACCURACY, CROSS_ENTROPY, MPCS = BLUE, GREY, ORANGE

"""The colours of all figures, from the palette of Okabe and Ito, which colour-blind readers can distinguish."""

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
AMBER, SKY, BLACK, WHITE = "#e69f00", "#56b4e9", "#000000", "white"
RED = "#b00020"
GREY, DARK_GREY, LIGHT_GREY, FAINT_GREY, GRID = "#999999", "#666666", "#cccccc", "#bbbbbb", "#eeeeee"

SYSTEMS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK)
"""The colours of the systems in one figure, in this order."""
TARGETS, NONTARGETS = ORANGE, BLUE
RELEASED, DANGEROUS = GREEN, RED
ACCURACY, CROSS_ENTROPY, MPCS = BLUE, GREY, ORANGE

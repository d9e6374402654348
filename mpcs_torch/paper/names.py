"""The names of the paper's experiments, apart from the code that runs them: the command lists them without torch."""

EXPERIMENTS = (
    "exp01",
    "exp01-breast-cancer",
    *(f"exp{number:02}" for number in range(2, 11)),
    "case-study",
)
QUICK = tuple(name for name in EXPERIMENTS if name not in ("exp03", "exp05", "exp10", "case-study"))
"""The experiments that run in seconds, not minutes: all but those on MNIST."""

"""The studies and their learning rates, apart from the code that runs them: the command lists them without torch."""

LEARNING_RATES = {"mnist": (0.005, 0.01, 0.015, 0.02, 0.04), "digits": (0.002, 0.005, 0.01)}
"""By study; each method is trained at each of them."""

"""The paper's experiments by name, and the numbers printed in it; the command lists them without torch."""

EXPERIMENTS = ("exp01", "exp01-breast-cancer", *(f"exp{number:02}" for number in range(2, 11)), "case-study")
QUICK = tuple(name for name in EXPERIMENTS if name not in ("exp03", "exp05", "exp10", "case-study"))
"""The experiments that run in seconds, not minutes: all but those on MNIST."""


BENCHMARKS = ("accuracy", "f1_macro", "mcc", "mean_squared_error", "cross_entropy")
"""The metrics that the paper compares MPCS with, in the order of its tables."""

TABLE_2 = {
    "exp01": (-0.9091, -0.9092, -0.9011, 0.9873, 0.9827),
    "exp02": (-0.9886, -0.9936, -0.9935, 0.9989, 0.9989),
    "exp03": (-0.9881, -0.9886, -0.9880, 0.9880, 0.9841),
    "exp04": (-0.9106, -0.9106, -0.9107, 0.9547, 0.9547),
    "exp05": (-0.9231, -0.9229, -0.9220, 0.9299, 0.9168),
    "exp06": (-0.9576, -0.9549, -0.9587, 0.9618, 0.9619),
    "exp07": (-0.9846, -0.9844, -0.9827, 0.9929, 0.9928),
    "exp08": (-0.9382, -0.9352, -0.9373, 0.9700, 0.9718),
    "exp09": (-0.9721, -0.9735, -0.9706, 0.9815, 0.9862),
    "exp10": (-0.9757, -0.9754, -0.9760, 0.9774, 0.9763),
}
"""Spearman correlation of MPCS with each benchmark over the epochs of an experiment."""

TABLE_3 = {
    "exp01": (0.28, 1.76, 2.01, 0.49, 0.49, 4.27),
    "exp02": (0.33, 1.62, 2.79, 0.59, 0.49, 13.66),
    "exp03": (26.15, 50.21, 88.63, 33.88, 33.74, 497.49),
    "exp04": (31.56, 32.98, 33.9, 31.8, 35.55, 43.98),
    "exp05": (692.03, 696.62, 702.07, 693.26, 788.27, 710.92),
    "exp06": (7.25, 8.34, 8.17, 7.26, 7.59, 7.08),
    "exp07": (21.3, 22.27, 22.34, 21.39, 22.43, 22.4),
    "exp08": (38.92, 40.05, 39.99, 39.04, 40.07, 38.89),
    "exp09": (228.87, 230.86, 232.93, 229.05, 245.07, 230.59),
    "exp10": (2672.93, 2703.11, 2746.43, 2685.93, 2927.46, 2802.63),
}
"""Milliseconds of one evaluation, forward pass included: the benchmarks, then MPCS."""

RECORD_FILES = {**{name: f"{name}.csv" for name in ("exp03", "exp05", "exp07", "exp09")}, "case-study": "compare1.csv"}
"""The published per-epoch records of experiments that can replay (IRIS and DIGITS were split without a seed)."""

CASE_STUDY_PICKS = {**dict.fromkeys(BENCHMARKS, 132), "mpcs": 133}
CASE_STUDY_ERRORS = {132: (5108, 2621), 133: (5128, 2605)}
"""All errors and dangerous errors of the two picks."""

# Fig. 5 as printed: rows are predictions, columns labels.
FIGURE_5 = {
    132: (
        (5777, 1, 105, 49, 16, 113, 112, 11, 81, 33),
        (0, 6517, 53, 24, 23, 23, 29, 44, 90, 17),
        (12, 47, 5338, 165, 33, 45, 53, 71, 72, 9),
        (13, 32, 67, 5392, 6, 258, 1, 16, 150, 89),
        (13, 12, 114, 3, 5516, 85, 80, 67, 35, 280),
        (10, 52, 6, 244, 4, 4616, 62, 6, 182, 31),
        (24, 2, 46, 9, 31, 83, 5527, 2, 39, 1),
        (18, 11, 67, 82, 17, 27, 5, 5893, 34, 227),
        (49, 58, 142, 96, 19, 112, 48, 13, 5092, 38),
        (7, 10, 20, 67, 177, 59, 1, 142, 76, 5224),
    ),
    133: (
        (5766, 1, 88, 44, 13, 96, 105, 11, 74, 31),
        (0, 6501, 40, 23, 22, 21, 27, 46, 86, 15),
        (23, 55, 5419, 191, 41, 54, 92, 91, 102, 10),
        (15, 33, 67, 5385, 7, 250, 1, 18, 163, 89),
        (15, 11, 101, 2, 5476, 83, 91, 67, 30, 226),
        (11, 55, 8, 253, 4, 4659, 75, 6, 220, 33),
        (24, 1, 39, 9, 28, 68, 5476, 1, 32, 1),
        (14, 9, 50, 69, 7, 21, 4, 5809, 24, 155),
        (45, 62, 119, 80, 17, 101, 44, 12, 5017, 25),
        (10, 14, 27, 75, 227, 68, 3, 204, 103, 5364),
    ),
}

FIGURE_6 = {"train_accuracy": 1.0004, "test_accuracy": 1.0003, "mpcs": 0.9838, "dangerous": 0.9964}
"""Sums over the epochs, the run that learns with MPCS to the plain one."""

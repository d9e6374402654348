"""Numbers printed in the paper, to stand beside ours."""

BENCHMARKS = ("accuracy", "f1_macro", "mcc", "mean_squared_error", "cross_entropy")
"""The metrics that the paper compares MPCS with, in the order of its tables."""

TABLE_2 = {
    "exp01": (-0.9091, -0.9092, -0.9011, 0.9873, 0.9827),
    "exp02": (-0.9886, -0.9936, -0.9935, 0.9989, 0.9989),
    "exp03": (-0.9881, -0.9886, -0.9880, 0.9880, 0.9841),
}
"""Spearman correlation of MPCS with each benchmark over the turns of an experiment."""

RECORD_FILES = {"exp03": "exp03.csv", "case-study": "compare1.csv"}
"""The published per-turn records of the experiments that can replay (IRIS and DIGITS were split without a seed)."""

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

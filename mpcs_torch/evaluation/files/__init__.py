"""Files of predictions and of trials: read with every value checked, matched, and written.

Whatever reads, matches or writes a file raises `PredictionsError` if the file cannot be read or breaks a rule. The
message names the file, and the row and the column if they are known.
"""

"""Read, match and write files of predictions and of trials; every value that is read is checked.

All functions raise a `PredictionsError` if a file cannot be read or breaks a rule. The message names the file, and also
the row and the column if they are known.
"""

"""The metrics whose intervals allow for one more row, as bad as can be."""

from mpcs_torch.metrics.named_metrics import ENTRIES

MEANS = {
    entry.name
    for entry in ENTRIES
    if entry.takes in ("decisions", "probabilities", "log_probabilities")
    and getattr(entry.make(4), "interval_rule", "") == "mean"
}

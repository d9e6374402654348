"""Lightning and the Trainer of Hugging Face without warnings, logs and progress bars."""

import logging
import warnings
from functools import partial

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own deprecations
    import pytorch_lightning as pl

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
Trainer = partial(
    pl.Trainer,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)

ARGUMENTS = {
    "use_cpu": True,
    "report_to": "none",
    "max_grad_norm": 0.0,
    "disable_tqdm": True,
    "dataloader_pin_memory": False,
    "logging_strategy": "no",
}
"""Arguments of every Trainer of Hugging Face."""

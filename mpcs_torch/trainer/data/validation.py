"""A validation split, held out of the training samples."""

from dataclasses import replace

import torch
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from mpcs_torch.trainer.data.splits import DataError, DataSplits


def hold_out_validation(data: DataSplits, fraction: float, seed: int) -> DataSplits:
    """Move a fraction of the training samples to the validation split, the same fraction of each class.

    Where the samples belong to groups (`Split.groups`), whole groups are moved: fraction and classes are then met as
    closely as the groups allow.

    Args:
        data: A data set without a validation split of its own.
        fraction: How much of the training samples to move, in (0, 1); with groups at most 1/2.
        seed: Of the draw; the global random generators are not touched.

    Raises:
        DataError: If the data set has a validation split, or cannot be split so.
    """
    if data.validation is not None:
        raise DataError("data.validation_fraction must not be set: this data set has a validation split of its own")
    labels, groups = data.train.labels.numpy(), data.train.groups
    places = torch.arange(len(labels)).numpy()
    try:
        if groups is None:
            kept, held = train_test_split(places, test_size=fraction, random_state=seed, stratify=labels)
        else:
            parts, number = round(1 / fraction), len(set(groups.tolist()))
            if number < parts:  # scikit-learn before 1.6 moves all samples or none
                raise ValueError(f"it needs at least {parts} groups, but there are {number}")
            folds = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
            kept, held = next(folds.split(places, labels, groups.numpy()))
    except ValueError as error:  # such as a class with one sample
        reason = f"data.validation_fraction {fraction} cannot split {len(labels)} training samples: {error}"
        raise DataError(reason) from None
    kept, held = (torch.from_numpy(index).sort().values for index in (kept, held))
    return replace(data, train=data.train.at(kept), validation=data.train.at(held))

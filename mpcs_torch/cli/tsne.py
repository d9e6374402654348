"""Suggest a concern spec from a t-SNE of a data set, for ``mpcs concern suggest``."""

from pathlib import Path

import torch
import typer
from sklearn.manifold import TSNE

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.neighbours import neighbour_shares, spec_from_neighbours
from mpcs_torch.plots.embedding import embedding_figure
from mpcs_torch.trainer.data import DATASETS
from mpcs_torch.trainer.sections import DataConfig

PERPLEXITY = 30
"""Default of scikit-learn; a t-SNE needs more samples than this."""
MAX_SAMPLES = 3000
"""A t-SNE of this many samples takes seconds."""


def spec_from_tsne(name: str, data_root: Path, picture: Path, *, min_share: float, factor: float) -> ConcernSpec:
    """Release the classes of a data set that overlap in a t-SNE, and draw the t-SNE."""
    name, _, ucr_set = name.partition("/")
    if name not in DATASETS or (name == "ucr") != bool(ucr_set):
        raise typer.BadParameter(f"{name}: must be one of {', '.join(DATASETS)}, with UCR sets as ucr/NAME")
    data = DataConfig.model_validate({"name": name, **({"set": ucr_set} if ucr_set else {})}).load(data_root)
    if len(data.train.labels) <= PERPLEXITY:
        raise typer.BadParameter(
            f"{name}: a t-SNE needs more than {PERPLEXITY} samples, but it has {len(data.train.labels)}"
        )
    chosen = torch.randperm(len(data.train.labels), generator=torch.Generator().manual_seed(0))[:MAX_SAMPLES]
    inputs, labels = data.train.inputs[chosen].flatten(1), data.train.labels[chosen]
    embedding = torch.from_numpy(TSNE(random_state=0).fit_transform(inputs.numpy()))
    shares = neighbour_shares(embedding, labels, len(data.class_names))
    spec = spec_from_neighbours(shares, data.class_names, min_share=min_share, factor=factor)
    embedding_figure(embedding, labels, spec.released(), data.class_names).savefig(picture, dpi=110)
    typer.echo(f"wrote {picture}")
    return spec

"""Drafts from the neighbours in an embedding, given or by t-SNE, for ``mpcs concern suggest``."""

from pathlib import Path
from typing import NamedTuple

import torch
from sklearn.manifold import TSNE
from torch import Tensor

from mpcs_torch.cli.console import note
from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.cli.samples import Samples
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.neighbours import count_releases, neighbour_shares, spec_from_neighbours
from mpcs_torch.plots.embedding import embedding_figure
from mpcs_torch.tables import Table

PERPLEXITY = 30
"""Default of scikit-learn; a t-SNE needs more samples than this."""
MAX_SAMPLES = 3000
"""A t-SNE of this many samples takes seconds."""
Notes = list[Table | str]
"""Remarks that are printed beside a draft."""


class Rule(NamedTuple):
    """The rule by which a draft releases pairs: the arguments of `spec_from_neighbours`."""

    min_share: float | None
    pairs: int | None
    factor: float

    def draft(self, shares: Tensor, class_names: tuple[str, ...]) -> ConcernSpec:
        """Draft a spec from the shares of neighbours."""
        return spec_from_neighbours(shares, class_names, **self._asdict())

    def agreement(self, runs: Tensor) -> Tensor:
        """Count the runs that alone would release each pair."""
        return count_releases(runs, min_share=self.min_share, pairs=self.pairs)


def project(samples: Samples, seed: int) -> Samples:
    """Project samples to two dimensions by t-SNE: of a large data set, 3000 that the seed draws.

    The first seed starts from the principal components, as is scikit-learn's default; because every such start is the
    same, the other seeds start from random positions.
    """
    if len(samples.labels) <= PERPLEXITY:
        raise ValueError(f"a t-SNE needs more than {PERPLEXITY} samples, but got {len(samples.labels)}.")
    chosen = torch.randperm(len(samples.labels), generator=torch.Generator().manual_seed(seed))[:MAX_SAMPLES]
    tsne = TSNE(perplexity=PERPLEXITY, init="random" if seed else "pca", random_state=seed)
    embedding = torch.from_numpy(tsne.fit_transform(samples.points[chosen].numpy()))
    return Samples(embedding, samples.labels[chosen], samples.class_names)


def draft_from_tsne(samples: Samples, seeds: int, rule: Rule, picture: Path) -> tuple[ConcernSpec, Notes]:
    """Draft a spec from the mean over t-SNE runs, draw the first run, and say how many runs agree on each pair."""
    size = len(samples.class_names)
    rule.draft(torch.ones(size, size), samples.class_names)  # fail before the slow part if the rule is broken
    runs = []
    with counting_bar("t-SNE", seeds) as advance:
        for seed in range(seeds):
            runs.append(project(samples, seed))
            advance()
    return _draft(runs, rule, picture)


def draft_from_embedding(samples: Samples, rule: Rule, picture: Path) -> tuple[ConcernSpec, Notes]:
    """Draft a spec from the neighbours in an embedding, and draw it if it has two dimensions."""
    return _draft([samples], rule, picture)


def _draft(runs: list[Samples], rule: Rule, picture: Path) -> tuple[ConcernSpec, Notes]:
    names = runs[0].class_names
    shares = torch.stack([neighbour_shares(run.points, run.labels, len(names)) for run in runs])
    spec = rule.draft(shares.mean(dim=0), names)
    if runs[0].points.shape[1] == 2:
        embedding_figure(runs[0].points, runs[0].labels, spec.released(), names).savefig(picture, dpi=110)
        note(f"wrote {picture}")
    seen = torch.stack([torch.bincount(run.labels, minlength=len(names)) > 0 for run in runs]).all(dim=0)
    missing = [name for name, is_seen in zip(names, seen.tolist(), strict=True) if not is_seen]
    notes = [f"Classes without samples, whose pairs need your judgment: {', '.join(missing)}."] if missing else []
    return spec, [*notes, *_pairs_found(spec, shares, rule.agreement(shares))]


def _pairs_found(spec: ConcernSpec, shares: Tensor, counts: Tensor) -> Notes:
    """List the pairs of the draft and those that only single runs release, with their share of neighbours."""
    mean, runs, names = shares.mean(dim=0), len(shares), spec.classes
    mutual, drafted = torch.maximum(mean, mean.t()), spec.released()
    found = ((counts > 0) | drafted).triu(1).nonzero().tolist()
    found.sort(key=lambda pair: (not drafted[*pair], -mutual[*pair].item()))
    rows = [[f"{names[i]} and {names[j]}", f"{mutual[i, j]:.3f}"] for i, j in found]
    if runs == 1:
        return [Table(["pair", "share of neighbours"], rows)]
    for row, (i, j) in zip(rows, found, strict=True):
        row += ["yes" if drafted[i, j] else "no", f"{counts[i, j]} of {runs}"]
    text = f"Means over {runs} seeds of t-SNE, and the seeds that alone would release the pair:"
    return [text, Table(["pair", "share of neighbours", "in the draft", "seeds"], rows)]

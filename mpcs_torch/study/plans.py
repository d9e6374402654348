"""The methods, learning rates and seeds of each study, apart from the code that runs them, which needs torch."""

from dataclasses import dataclass

WARM_COSINE = "scheduler={name: cosine, warmup_epochs: 5}"
SMOOTHED = "loss={name: cross_entropy, label_smoothing: 0.02}"
_MARGIN = "loss={name: softmax_margin, margin: %s, released: 0.1, label_smoothing: 0.02}"
PEERS = "mpcs_torch.study.peer_losses"
_TOLD: dict[str, tuple[str, ...]] = {
    "constant": (),
    "plateau": ("scheduler={name: plateau, score: cross_entropy}",),
    "cosine": ("scheduler={name: cosine}",),
    "cosine, warmup": (WARM_COSINE,),
    "cosine, warmup, label smoothing": (WARM_COSINE, SMOOTHED),
    "cosine, warmup, label smoothing, averaged": (WARM_COSINE, SMOOTHED, "training.averaging=0.998"),
    "loss scale, validation": ("training.loss_scale=mpcs_count",),
    "MPCSLR, warmup, smoothed": ("scheduler={name: mpcs_lr, warmup_steps: 5, smoothing: 0.8}",),
    "focal": (WARM_COSINE, f"loss={{path: '{PEERS}:focal', gamma: 1.0}}"),
    "cost-weighted cross entropy": (WARM_COSINE, f"loss={{path: '{PEERS}:cost_weighted', released: 0.1}}"),
    "soft labels": (WARM_COSINE, f"loss={{path: '{PEERS}:soft_labels', sharpness: 8.0, released: 0.5}}"),
    "cross entropy plus expected cost": (
        WARM_COSINE,
        f"loss={{path: '{PEERS}:with_expected_cost', share: 3.0, released: 0.1}}",
    ),
    "concern loss": (WARM_COSINE, "loss={name: concern, concern_share: 0.8, released: 0.1, label_smoothing: 0.02}"),
    "softmax margin 1": (WARM_COSINE, _MARGIN % 1.0),
    "softmax margin 2": (WARM_COSINE, _MARGIN % 2.0),
    "softmax margin 2, averaged": (WARM_COSINE, _MARGIN % 2.0, "training.averaging=0.998"),
}
_MEANS: dict[str, tuple[str, ...]] = {
    "decisiveness loss": (WARM_COSINE, "loss={name: generalized_mean, power: 1.0}"),
    "robustness loss": (WARM_COSINE, f"loss={{name: generalized_mean, power: {-2 / 3}}}"),
}
"""Losses of generalized means of the probability of the true class; cross entropy is that of power 0."""
METHODS = _TOLD | _MEANS
"""Overrides of the study's config. The loss scale is the MPCS of the validation samples at the latest epoch. All losses
are trained with the same schedule, so that any gain comes from the loss."""
PLAIN = tuple(_TOLD)[:6]
"""Methods that do not know which errors are dangerous."""
LOSSES = tuple(_TOLD)[8:]
"""Methods with a loss that might make fewer dangerous errors."""
RECIPE, RECIPE_FACTORS = "softmax margin 2", (0.6, 0.5)
"""The recommended method, and the concern of released pairs that its decision rule is tried with; 0.5 is the factor of
the concerns of the studies."""


@dataclass(frozen=True)
class Plan:
    """The runs of one study."""

    learning_rates: tuple[float, ...]
    """Each method is trained at each of them."""
    methods: tuple[str, ...] = tuple(_TOLD)
    chooses: bool = True
    """Whether the study chooses its recipe among all losses; otherwise it tries the recommended one as it is."""
    tuning_seeds: int = 20
    """The number of seeds under which every method is trained at every learning rate."""
    choice_seeds: int = 20
    """The number of seeds, those included, by which the methods at their best learning rates are compared."""
    fresh_seeds: range = range(20, 60)
    """Seeds that nothing was chosen by, under which the recipe is compared with the best plain method."""


_TRANSFER = ("plateau", "cosine, warmup", "cosine, warmup, label smoothing", RECIPE)
STUDIES = {
    # The recipe's second factor was added when the outcomes of seeds 20 to 59 were seen.
    "mnist": Plan((0.005, 0.01, 0.02, 0.04), tuning_seeds=6, fresh_seeds=range(60, 100)),
    "digits": Plan((0.0025, 0.005, 0.01, 0.02), tuning_seeds=10, choice_seeds=40, fresh_seeds=range(40, 80)),
    **{
        f"mnist-random-{number}": Plan(
            (0.01, 0.02), _TRANSFER[1:], chooses=False, tuning_seeds=3, choice_seeds=3, fresh_seeds=range(3, 23)
        )
        for number in (1, 2, 3)
    },
    "digits-means": Plan(
        (0.0025, 0.005, 0.01, 0.02),
        ("cosine, warmup", *_MEANS, RECIPE),
        chooses=False,
        tuning_seeds=10,
        choice_seeds=40,
        fresh_seeds=range(40, 60),
    ),
    "mnist-cnn": Plan((0.002,), _TRANSFER[1:], chooses=False, tuning_seeds=2, choice_seeds=2, fresh_seeds=range(2, 8)),
    # Learning rates above 0.01 were added when the outcomes of seeds 20 to 59 were seen.
    "breast-cancer": Plan((0.003, 0.01, 0.03, 0.1), _TRANSFER, chooses=False, fresh_seeds=range(60, 100)),
    "lstm": Plan((0.001, 0.003, 0.01), _TRANSFER, chooses=False),
}
"""By the name of their config under ``configs/studies``."""

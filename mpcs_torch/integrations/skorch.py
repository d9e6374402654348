"""A callback for skorch: `SelectCheckpoint` keeps the best epochs, stops the training, and loads the best epoch.

`MPCSLR` needs no adapter. Its reference is stored with the optimizer, so ``partial_fit`` continues with it::

    NeuralNetClassifier(
        ...,
        callbacks=[
            ("mpcs", EpochScoring(concern_scorer("mpcs", concern), lower_is_better=False, name="neg_mpcs")),
            ("rate", LRScheduler(MPCSLR, monitor=lambda net: -net.history[-1, "neg_mpcs"])),
            ("best", SelectCheckpoint("checkpoints", SelectionRule("neg_mpcs", {"neg_mpcs": "max"}), patience=5)),
        ],
    )
"""

from pathlib import Path
from typing import Any, Self

from skorch import NeuralNet
from skorch.callbacks import Callback

from mpcs_torch.integrations.checkpoints import CheckpointCallback, make_selector
from mpcs_torch.learning import CheckpointSelector, SelectionRule

__all__ = ["SelectCheckpoint"]


class SelectCheckpoint(CheckpointCallback, Callback):  # type: ignore[misc]
    """Keep the states of the best epochs with a `CheckpointSelector`, numbered as in the history of the net.

    A checkpoint is a dictionary of the state dicts of all modules, criteria and optimizers of the net, such as
    ``"module"`` and ``"optimizer"``. The metrics of the rule are values in the history: put the `EpochScoring` that
    computes them before this callback. With ``patience``, the training stops as with skorch's `EarlyStopping`.

    A training by ``fit`` creates the selector, in an empty folder; ``partial_fit`` continues with the same selector.
    So each ``fit`` needs a folder of its own: `set_params` with ``callbacks__best__selector_or_folder`` sets it.

    Args:
        selector_or_folder: A `CheckpointSelector`, or the folder of a new one.
        rule: The rule of a new selector, which names values in the history.
        load_best: Whether to load the best epoch into the net at the end of the training.
        **options: The other arguments of a new `CheckpointSelector`.

    Attributes:
        selector: The `CheckpointSelector`, after the training has begun.

    Raises:
        ArgumentsError: From ``fit``, if the arguments do not fit together; a TypeError.
        ValueError, FileExistsError: From ``fit``, in the same cases as `CheckpointSelector`.
        MissingMetricError: From ``fit``, if the history lacks a metric of the rule; a ValueError.
        TrainedTwiceError: From ``fit``, if the same selector has recorded another training; a RuntimeError.

    Example:
        >>> import tempfile
        >>> from mpcs_torch.integrations.skorch import SelectCheckpoint
        >>> from mpcs_torch.learning import SelectionRule
        >>> callback = SelectCheckpoint(tempfile.mkdtemp(), SelectionRule("valid_loss", {"valid_loss": "min"}))
        >>> callback.get_params()["rule"].by
        'valid_loss'
    """

    remedy = (
        " in the history: put the EpochScoring that computes it before SelectCheckpoint"
    )

    def __init__(
        self,
        selector_or_folder: CheckpointSelector | str | Path,
        rule: SelectionRule | None = None,
        *,
        load_best: bool = False,
        **options: Any,
    ) -> None:
        # As scikit-learn requires, the attributes are the arguments, and `on_train_begin` checks them.
        self.selector_or_folder = selector_or_folder
        self.rule = rule
        self.load_best = load_best
        self._option_names_ = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def _get_param_names(self) -> list[str]:
        return ["selector_or_folder", "rule", "load_best", *self._option_names_]

    def initialize(self) -> Self:
        """Let the next training create a selector. skorch also calls this without a training, in `set_params`."""
        self._is_initialized = True
        return self

    def on_train_begin(
        self,
        net: NeuralNet,
        X: Any = None,  # noqa: ARG002, N803
        y: Any = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Create the selector if the net was initialized."""
        if self._is_initialized:
            options = {name: getattr(self, name) for name in self._option_names_}
            is_folder = not isinstance(self.selector_or_folder, CheckpointSelector)
            # `partial_fit` after `set_params`.
            if net.history and is_folder and hasattr(self, "selector"):
                options["resume"] = True
            self.use(make_selector(self.selector_or_folder, self.rule, options))
            self._is_initialized = False
        self._begins = True

    def on_epoch_begin(self, net: NeuralNet, *_: Any, **__: Any) -> None:
        """Begin a new training, or continue that of the net's history, which `LoadInitState` has loaded by now."""
        if self._begins:
            self._begins = False
            self.begin_training(is_new=len(net.history) == 1)
        self.begin_training(is_new=not net.history)

    def on_epoch_end(
        self,
        net: NeuralNet,
        dataset_train: Any = None,  # noqa: ARG002
        dataset_valid: Any = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Update the selector with the last values in the history."""
        if self.record(
            lambda: _state(net), epoch=net.history[-1, "epoch"], values=net.history[-1]
        ):
            raise KeyboardInterrupt  # how skorch's EarlyStopping stops

    def on_train_end(
        self,
        net: NeuralNet,
        X: Any = None,  # noqa: ARG002, N803
        y: Any = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Load the best epoch if ``load_best`` is set; warn if no epoch was recorded."""
        self.end_training()
        if self.load_best and self.selector.best is not None:
            for name, state in self.selector.load_best(map_location=net.device).items():
                getattr(net, f"{name}_").load_state_dict(state)


def _state(net: NeuralNet) -> dict[str, Any]:
    """Return the state dicts of the parts of ``net`` by name: module, criterion and optimizer, or those of the user."""
    names = [*net._modules, *net._criteria, *net._optimizers]
    return {
        name.removesuffix("_"): getattr(net, f"{name.removesuffix('_')}_").state_dict()
        for name in names
    }

"""The Trainer of Hugging Face takes the path of the plain loop and ranks epochs the right way."""

from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    EvalPrediction,
    PretrainedConfig,
    PreTrainedModel,
    Trainer,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.integrations.huggingface import (
    SelectCheckpoint,
    compute_metrics,
    loss_function,
)
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.metrics import Accuracy, ClassErrorRates, MacroF1
from tests.integrations import plain_loop as plain
from tests.integrations.quiet import ARGUMENTS
from tests.refused import Refused


class Rows(Dataset[dict[str, Tensor]]):
    def __init__(self, split: Dataset[Any], size: int) -> None:
        self.split, self.size = split, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        inputs, label = self.split[index]
        return {"inputs": inputs, "labels": label}


class Classifier(PreTrainedModel):
    """A model of its own that computes no loss."""

    config_class = PretrainedConfig

    def __init__(self) -> None:
        super().__init__(PretrainedConfig())
        self.net = plain.model()

    def forward(
        self, inputs: Tensor, labels: Tensor | None = None
    ) -> SequenceClassifierOutput:
        return SequenceClassifierOutput(logits=self.net(inputs))


class NotingTrainer(Trainer):
    """Notes the learning rate after each evaluation."""

    rates: list[float]

    def _evaluate(self, *args: Any, **kwargs: Any) -> Any:
        metrics = super()._evaluate(*args, **kwargs)
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        return metrics


def trainer_in(
    folder: Path, *callbacks: Any, loss: Any = None, **settings: Any
) -> NotingTrainer:
    net = Classifier()
    optimizer = torch.optim.SGD(net.parameters(), lr=plain.RATE)
    arguments: dict[str, Any] = {
        **ARGUMENTS,
        "output_dir": str(folder),
        "num_train_epochs": plain.EPOCHS,
        "per_device_train_batch_size": plain.BATCH,
        "per_device_eval_batch_size": plain.BATCH,
        "train_sampling_strategy": "sequential",
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "metric_for_best_model": "mpcs_loss",
        **settings,
    }
    train, valid = plain.data()
    trainer = NotingTrainer(
        net,
        TrainingArguments(**arguments),
        train_dataset=Rows(train, 60),
        eval_dataset=Rows(valid, 30),
        compute_metrics=compute_metrics(plain.metrics()),
        compute_loss_func=loss_function(loss or plain.loss()),
        callbacks=list(callbacks),
        optimizers=(optimizer, plain.scheduler(optimizer)),
    )
    trainer.rates = []
    return trainer


def selecting(folder: Path, **options: Any) -> SelectCheckpoint:
    return SelectCheckpoint(folder, plain.rule(mpcs="mpcs_loss"), **options)


def without_prefix(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("net."): value for name, value in weights.items()}


@pytest.mark.parametrize("by_batch", [False, True])
def test_pick_weights_and_learning_rates_are_those_of_the_plain_loop(
    tmp_path: Path, by_batch: bool
) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    best = selecting(tmp_path / "selector")
    settings = {
        "load_best_model_at_end": True,
        "batch_eval_metrics": by_batch,
        "eval_on_start": True,
    }
    trainer = trainer_in(tmp_path / "trainer", best, **settings)
    trainer.train()
    plain.assert_same(
        expected._replace(picked=expected.picked + 1),  # counted from 1
        best.selector,
        without_prefix(best.selector.load_best()),
        trainer.rates[-plain.EPOCHS :],
        [epoch.values["mpcs_loss"] for epoch in best.selector.epochs],
        # Otherwise the Trainer measures all samples at once.
        rounding=0.0 if by_batch else 1e-12,
    )
    assert trainer.args.greater_is_better is False
    assert trainer.state.best_global_step == plain.STEPS * (expected.picked + 1)


def test_accumulated_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    trainer = trainer_in(
        tmp_path / "trainer",
        per_device_train_batch_size=5,
        gradient_accumulation_steps=2,
        save_strategy="no",
    )
    trainer.train()
    assert trainer.rates == pytest.approx(expected.rates, rel=1e-5)


def test_the_loss_of_a_batch_is_its_share_of_the_labels_that_count() -> None:
    logits, labels = torch.randn(6, 3), torch.tensor([0, 1, -100, 2, 0, -100])
    expected = nn.functional.cross_entropy(logits, labels)
    compute = loss_function(nn.CrossEntropyLoss())
    parts = [
        compute({"logits": logits[rows]}, labels[rows], num_items_in_batch=4)
        for rows in ([0, 1, 2], [3, 4, 5])
    ]
    torch.testing.assert_close(sum(parts), expected)
    tokens = compute((logits.view(2, 3, 3),), labels.view(2, 3))
    torch.testing.assert_close(tokens, expected)
    soft = logits.flip(0).softmax(1)
    torch.testing.assert_close(
        compute((logits.view(2, 3, 3),), soft.view(2, 3, 3)),
        nn.functional.cross_entropy(logits, soft),
    )


def test_a_batch_in_which_no_label_counts_adds_nothing() -> None:
    logits = torch.randn(2, 4, 3, requires_grad=True)
    labels = torch.full((2, 4), -100)
    compute = loss_function(nn.CrossEntropyLoss())
    loss = compute((logits,), labels, num_items_in_batch=6)
    loss.backward()
    assert loss == 0
    assert logits.grad is not None
    assert not logits.grad.any()


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        ((2, 3, 4, 4), (2, 4, 4)),
        ((2, 3), (3,)),
        ((2,), (2,)),
        ((2, 3, 3), (2, 2)),
        ((2, 3), (2, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_named(
    logits: tuple[int, ...], labels: tuple[int, ...]
) -> None:
    arrays = np.zeros(logits), np.zeros(labels, dtype=int)
    refusal = Refused("classes_last", "logits", [logits, labels])
    with refusal:
        compute_metrics({"accuracy": Accuracy(3)})(EvalPrediction(*arrays))
    scores, target = map(torch.from_numpy, arrays)
    with refusal:
        loss_function(nn.CrossEntropyLoss())((scores,), target)


def in_batches(logits: Any, labels: Any) -> list[EvalPrediction]:
    """Return what the Trainer passes with ``batch_eval_metrics``."""
    return [
        EvalPrediction(torch.from_numpy(logits[rows]), torch.from_numpy(labels[rows]))
        for rows in (slice(0, 2), slice(2, 4), slice(4, 6))
    ]


@pytest.mark.parametrize("ignore_index", [None, -100, 0])
@pytest.mark.parametrize("length", [2, 3, 5])  # 3 is the number of classes
@pytest.mark.parametrize("by_batch", [False, True])
def test_tokens_are_scored_by_their_last_dimension(
    ignore_index: int | None, length: int, by_batch: bool
) -> None:
    generator = np.random.default_rng(length)
    logits = generator.normal(size=(6, length, 3)).astype(np.float32)
    labels = generator.integers(0, 3, (6, length))
    labels[:2, 1:] = -100  # padding
    parts = [EvalPrediction((logits, logits), labels)]  # of several outputs, the first
    if by_batch:
        parts = in_batches(logits, labels)
    compute = compute_metrics({"f1": MacroF1(3, ignore_index=ignore_index)})
    counts = (labels != -100) & (labels != ignore_index)
    expected = f1_score(labels[counts], logits.argmax(-1)[counts], average="macro")
    for _ in range(2):  # the second evaluation does not count the first
        for part in parts:
            values = compute(part, compute_result=part is parts[-1])
        assert values == {"f1": pytest.approx(expected)}


def test_a_failed_evaluation_is_forgotten() -> None:
    scores, wrong = np.eye(3, dtype=np.float32), np.array([1, 2, 0])
    accuracy = Accuracy(3)
    accuracy.update(torch.from_numpy(scores), torch.from_numpy(wrong))
    compute = compute_metrics({"accuracy": accuracy})
    right = EvalPrediction(scores, np.arange(3))
    assert compute(right) == {"accuracy": 1.0}, "the batch of the loop is left out"
    compute(right, compute_result=False)
    with pytest.raises(InvalidValueError):
        compute(EvalPrediction(scores, np.arange(2)))
    assert compute(EvalPrediction(scores, wrong)) == {"accuracy": 0.0}
    assert accuracy.compute() == 0, "the metric of the loop is left alone"


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"save_strategy": "steps", "save_steps": 3},
        {"save_strategy": "steps", "save_steps": 1, "gradient_accumulation_steps": 4},
        {"save_strategy": "epoch", "eval_strategy": "steps", "eval_steps": 4},
    ],
)
def test_a_run_resumed_from_any_checkpoint_follows_the_unbroken_one(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    def run(name: str, checkpoint: str | None = None) -> NotingTrainer:
        best = selecting(tmp_path / name)
        trainer = trainer_in(tmp_path / "run", best, num_train_epochs=3, **settings)
        trainer.train(resume_from_checkpoint=checkpoint)
        return trainer

    unbroken = run("unbroken")
    checkpoints = sorted((tmp_path / "run").glob("checkpoint-*"))
    assert len(checkpoints) > 2
    for checkpoint in checkpoints:
        resumed = run(checkpoint.name, str(checkpoint))
        assert resumed.rates == unbroken.rates[len(unbroken.rates) - len(resumed.rates) :]
        rates = [one.optimizer.param_groups[0]["lr"] for one in (resumed, unbroken)]
        assert rates[0] == rates[1]
    assert sorted((tmp_path / "run").glob("checkpoint-*")) == checkpoints


@pytest.mark.parametrize(
    ("settings", "numbers"),
    [
        ({"max_steps": 8}, [1, 2]),  # an epoch that ends early has its own number
        ({"max_steps": 10}, [1, 2]),
        ({"max_steps": 12, "eval_strategy": "steps", "eval_steps": 4}, [4, 8, 12]),
    ],
)
def test_evaluations_are_numbered_by_epoch_or_by_step(
    tmp_path: Path, settings: dict[str, Any], numbers: list[int]
) -> None:
    rule = SelectionRule("eval_mpcs_loss", {"eval_mpcs_loss": "min"})
    best = SelectCheckpoint(tmp_path / "selector", rule)
    trainer_in(tmp_path / "trainer", best, save_strategy="no", **settings).train()
    assert [epoch.number for epoch in best.selector.epochs] == numbers


@pytest.mark.parametrize("name", ["clean_mpcs_loss", "eval_noisy_mpcs_loss"])
def test_of_several_evaluation_sets_that_of_the_rule_is_recorded(
    tmp_path: Path, name: str
) -> None:
    settings = {"metric_for_best_model": name, "load_best_model_at_end": True}
    best = SelectCheckpoint(tmp_path / "selector", SelectionRule(name, {name: "min"}))
    trainer = trainer_in(tmp_path / "trainer", best, **settings)
    valid = plain.data()[1]
    trainer.eval_dataset = {"clean": Rows(valid, 30), "noisy": Rows(valid, 11)}
    trainer.train()
    assert best.selector.best is not None
    assert len(best.selector.epochs) == plain.EPOCHS
    assert trainer.state.best_metric == best.selector.best.values[name]
    loaded = dict(trainer.model.state_dict())
    torch.testing.assert_close(loaded, best.selector.load_best(), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("size", [1, 5, 30])
def test_batches_that_are_not_concatenated_give_the_same_values(
    tmp_path: Path, size: int
) -> None:
    rows = Rows(plain.data()[1], size)
    values = trainer_in(tmp_path).evaluate(rows)
    parts = trainer_in(tmp_path, eval_do_concat_batches=False).evaluate(rows)
    assert parts["eval_mpcs_loss"] == values["eval_mpcs_loss"]


def test_batches_with_several_outputs_and_kinds_of_labels() -> None:
    logits, labels = np.eye(4, 3, dtype=np.float32), np.array([0, 1, 2, 0])
    compute = compute_metrics({"accuracy": Accuracy(3)})
    outputs = [(logits[:3], None), (logits[3:], None)]
    batches = EvalPrediction(outputs, [labels[:3], labels[3:]])  # type: ignore[arg-type]
    assert compute(batches) == compute(EvalPrediction(logits, labels))
    with Refused("one_kind_of_labels", "label_names", 2):
        compute(EvalPrediction(logits, (labels, labels)))


def for_search(folder: Path, best: SelectCheckpoint) -> NotingTrainer:
    trainer = trainer_in(folder, best)
    trainer.model_init = lambda trial: Classifier()
    trainer.optimizer = trainer.lr_scheduler = None
    return trainer


def test_each_trial_of_a_search_has_a_selector_of_its_own(tmp_path: Path) -> None:
    best = selecting(tmp_path / "selector", patience=9)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for_search(tmp_path / "trainer", best).hyperparameter_search(
        lambda trial: {"num_train_epochs": trial.suggest_int("num_train_epochs", 1, 2)},
        compute_objective=lambda metrics: metrics["eval_mpcs_loss"],
        n_trials=2,
        hp_name=lambda trial: f"trial-{trial.number}",
        sampler=optuna.samplers.GridSampler({"num_train_epochs": [1, 2]}, seed=0),
        backend="optuna",
        direction="minimize",
    )
    runs = [
        CheckpointSelector.open(tmp_path / "selector" / name)
        for name in ("trial-0", "trial-1")
    ]
    assert sorted(len(run.epochs) for run in runs) == [1, 2]
    assert best.selector.folder == runs[-1].folder
    assert {run.patience for run in runs} == {9}


@pytest.mark.parametrize("name", [None, "../outside", "/absolute"])
def test_trials_without_names_are_refused(tmp_path: Path, name: str | None) -> None:
    trainer = for_search(tmp_path / "trainer", selecting(tmp_path / "best"))
    hp_name = None if name is None else lambda trial: name
    with Refused("trial_name", "hp_name"):
        trainer.hyperparameter_search(
            lambda trial: {}, n_trials=1, backend="optuna", hp_name=hp_name
        )


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_training_that_begins_again_has_a_folder_if_epochs_were_recorded(
    tmp_path: Path, epochs: int
) -> None:
    """The Trainer begins again with a smaller batch; here, its callbacks are called as it calls them."""
    best = SelectCheckpoint(tmp_path, SelectionRule("loss", {"loss": "min"}))
    settings = TrainingArguments(
        str(tmp_path), eval_strategy="epoch", auto_find_batch_size=True, use_cpu=True
    )
    for score in (0.5, 0.4):
        best.on_train_begin(settings, TrainerState(), TrainerControl())
        for epoch in range(1, epochs + 1):
            state = TrainerState(epoch=float(epoch), global_step=epoch)
            values = {"metrics": {"eval_loss": score}, "model": Classifier()}
            best.on_evaluate(settings, state, TrainerControl(), **values)
    assert best.selector.folder == (tmp_path / "restart-1" if epochs else tmp_path)
    assert [epoch.values["loss"] for epoch in best.selector.epochs] == [0.4] * epochs


@pytest.mark.parametrize("name", [None, "accuracy"])
def test_a_scheduler_that_would_follow_no_loss_is_refused(
    tmp_path: Path, name: str | None
) -> None:
    best = selecting(tmp_path / "best")
    with Refused("followed_metric", "metric_for_best_model"):
        trainer_in(tmp_path / "trainer", best, metric_for_best_model=name).train()


def test_names_end_in_loss_if_and_only_if_lower_is_better() -> None:
    prediction = EvalPrediction((2 * np.eye(3, dtype=np.float32), None), np.arange(3))
    metrics = {
        "mpcs": MetaPatternConcernScore(3),
        "danger_loss": MetaPatternConcernScore(3),
        "accuracy": Accuracy(3),
    }
    names = ["mpcs_loss", "danger_loss", "accuracy"]
    assert list(compute_metrics(metrics)(prediction)) == names
    with Refused("named_loss", "'noloss'", type="Accuracy"):
        compute_metrics({"noloss": Accuracy(3)})
    with Refused("recorded_scalar", "metric rates_loss"):
        compute_metrics({"rates": ClassErrorRates(3)})(prediction)

"""The Trainer of Hugging Face takes the path of the plain loop and ranks epochs the right way."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor, nn
from torch.utils.data import Dataset

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.learning.selection import MissingMetricError
from mpcs_torch.metrics import Accuracy, ClassErrorRates, MacroF1
from tests.integrations import plain_loop as plain

os.environ["HF_HUB_OFFLINE"] = "1"
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

from mpcs_torch.integrations.huggingface import (
    SelectCheckpoint,
    compute_metrics,
    loss_function,
)
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
    arguments = {
        "output_dir": str(folder),
        "use_cpu": True,
        "report_to": "none",
        "num_train_epochs": plain.EPOCHS,
        "per_device_train_batch_size": plain.BATCH,
        "per_device_eval_batch_size": plain.BATCH,
        "train_sampling_strategy": "sequential",
        "max_grad_norm": 0.0,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "metric_for_best_model": "mpcs_loss",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "logging_strategy": "no",
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


def without_prefix(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("net."): value for name, value in weights.items()}


@pytest.mark.parametrize("by_batch", [False, True])
def test_pick_weights_and_learning_rates_are_those_of_the_plain_loop(
    tmp_path: Path, by_batch: bool
) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    selector = CheckpointSelector(tmp_path / "selector", plain.rule(mpcs="mpcs_loss"))
    settings = {
        "load_best_model_at_end": True,
        "batch_eval_metrics": by_batch,
        "eval_on_start": True,
    }
    trainer = trainer_in(tmp_path / "trainer", SelectCheckpoint(selector), **settings)
    trainer.train()
    trainer.evaluate()  # of the best model, after the training: not another epoch
    scores = [epoch.values["mpcs_loss"] for epoch in selector.epochs]
    weights = without_prefix(selector.load_best())
    counted_from_1 = expected._replace(picked=expected.picked + 1)
    rounding = (
        0.0 if by_batch else 1e-12
    )  # otherwise the Trainer measures all samples at once
    plain.assert_same(
        counted_from_1,
        selector,
        weights,
        trainer.rates[-plain.EPOCHS :],
        scores,
        rounding=rounding,
    )
    assert trainer.args.greater_is_better is False
    assert trainer.state.best_global_step == plain.STEPS * (expected.picked + 1)
    loaded = without_prefix(trainer.model.state_dict())
    assert all(torch.equal(loaded[name], value) for name, value in weights.items())


def test_a_run_resumed_by_the_trainer_follows_the_same_learning_rates(
    tmp_path: Path,
) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    trainer_in(tmp_path / "trainer", num_train_epochs=3, batch_eval_metrics=True).train()
    resumed = trainer_in(tmp_path / "trainer", batch_eval_metrics=True)
    resumed.train(
        resume_from_checkpoint=str(tmp_path / "trainer" / f"checkpoint-{3 * plain.STEPS}")
    )
    assert resumed.rates == expected.rates[3:]


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
    compute = loss_function(nn.CrossEntropyLoss())
    parts = [
        compute({"logits": logits[rows]}, labels[rows], num_items_in_batch=4)
        for rows in ([0, 1, 2], [3, 4, 5])
    ]
    torch.testing.assert_close(sum(parts), nn.functional.cross_entropy(logits, labels))
    tokens = compute((logits.view(2, 3, 3),), labels.view(2, 3))
    torch.testing.assert_close(tokens, nn.functional.cross_entropy(logits, labels))


@pytest.mark.parametrize("criterion", [nn.CrossEntropyLoss(), plain.loss()])
def test_a_batch_in_which_no_label_counts_adds_nothing(criterion: Any) -> None:
    logits = torch.randn(2, 4, 3, requires_grad=True)
    loss = loss_function(criterion)(
        (logits,), torch.full((2, 4), -100), num_items_in_batch=6
    )
    loss.backward()
    assert loss == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_soft_labels_have_the_shape_of_the_logits() -> None:
    logits, soft = torch.randn(2, 4, 3), torch.randn(2, 4, 3).softmax(-1)
    loss = loss_function(nn.CrossEntropyLoss())((logits,), soft)
    torch.testing.assert_close(
        loss, nn.functional.cross_entropy(logits.view(8, 3), soft.view(8, 3))
    )


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
    given, target = torch.zeros(logits), torch.zeros(labels, dtype=torch.int64)
    refusal = Refused("classes_last", "logits", [logits, labels])
    with refusal:
        loss_function(nn.CrossEntropyLoss())((given,), target)
    with refusal:
        compute_metrics({"accuracy": Accuracy(3)})(
            EvalPrediction(given.numpy(), target.numpy())
        )


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
    counts = (labels != -100) & (labels != ignore_index)
    metrics = {
        "accuracy": Accuracy(3, ignore_index=ignore_index),
        "f1": MacroF1(3, ignore_index=ignore_index),
    }
    compute = compute_metrics(metrics)
    for _ in range(2):  # the second evaluation does not count the first
        if by_batch:
            for start in (0, 2, 4):
                part = EvalPrediction(
                    *(
                        torch.from_numpy(array[start : start + 2])
                        for array in (logits, labels)
                    )
                )
                values = compute(part, compute_result=start == 4)
        else:
            values = compute(
                EvalPrediction((logits, logits), labels)
            )  # of several outputs, the first
        predicted = logits.argmax(-1)[counts]
        assert values["accuracy"] == pytest.approx(
            accuracy_score(labels[counts], predicted)
        )
        assert values["f1"] == pytest.approx(
            f1_score(labels[counts], predicted, average="macro")
        )


def test_a_failed_evaluation_is_forgotten() -> None:
    metrics = {"accuracy": Accuracy(3), "fewer": Accuracy(2)}
    metrics["accuracy"].update(
        torch.eye(3), torch.tensor([1, 2, 0])
    )  # of the loop that it comes from
    compute = compute_metrics({"accuracy": metrics["accuracy"]})
    right = EvalPrediction(np.eye(3, dtype=np.float32), np.arange(3))
    assert compute(right) == {"accuracy": 1.0}
    both = compute_metrics(metrics)
    with Refused("class_dimension", "preds", classes=2):
        both(EvalPrediction(np.eye(3, dtype=np.float32), np.array([1, 2, 0])))
    compute(right, compute_result=False)
    with pytest.raises(InvalidValueError):
        compute(EvalPrediction(np.eye(3), np.arange(2)))
    assert compute(EvalPrediction(np.eye(3, dtype=np.float32), np.array([1, 2, 0]))) == {
        "accuracy": 0.0
    }
    assert metrics["accuracy"].compute() == 0  # the given metric is left alone


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
        selector = CheckpointSelector(tmp_path / name, plain.rule(mpcs="mpcs_loss"))
        trainer = trainer_in(
            tmp_path / "run", SelectCheckpoint(selector), num_train_epochs=3, **settings
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        return trainer

    unbroken = run("unbroken")
    checkpoints = sorted((tmp_path / "run").glob("checkpoint-*"))
    assert len(checkpoints) > 2
    for checkpoint in checkpoints:
        resumed = run(checkpoint.name, str(checkpoint))
        assert resumed.rates == unbroken.rates[len(unbroken.rates) - len(resumed.rates) :]
        assert (
            resumed.optimizer.param_groups[0]["lr"]
            == unbroken.optimizer.param_groups[0]["lr"]
        )
    assert {path.name for path in (tmp_path / "run").glob("checkpoint-*")} == {
        path.name for path in checkpoints
    }


@pytest.mark.parametrize("steps", [8, 9, 10])
def test_an_epoch_that_ends_early_has_a_number_of_its_own(
    tmp_path: Path, steps: int
) -> None:
    selector = CheckpointSelector(tmp_path / "selector", plain.rule(mpcs="mpcs_loss"))
    trainer_in(
        tmp_path, SelectCheckpoint(selector), max_steps=steps, save_strategy="no"
    ).train()
    assert [epoch.number for epoch in selector.epochs] == [1, 2]


def test_evaluations_between_epochs_are_numbered_by_step(tmp_path: Path) -> None:
    selector = CheckpointSelector(
        tmp_path / "selector", SelectionRule("eval_mpcs_loss", {"eval_mpcs_loss": "min"})
    )
    settings = {
        "eval_strategy": "steps",
        "eval_steps": 4,
        "num_train_epochs": 2,
        "save_strategy": "no",
    }
    trainer_in(tmp_path / "trainer", SelectCheckpoint(selector), **settings).train()
    assert [epoch.number for epoch in selector.epochs] == [4, 8, 12]


def test_one_set_that_lacks_a_metric_is_told_before_the_next_step(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path / "selector", SelectionRule("mpcs", {"mpcs": "min"}))
    trainer = trainer_in(tmp_path / "trainer", best, num_train_epochs=3, save_strategy="no")
    with Refused("metric_of_rule", raises=MissingMetricError, metrics="mpcs") as refused:
        trainer.train()
    assert "eval_mpcs_loss" in refused.value.fields["given"]
    assert trainer.state.epoch == 1


@pytest.mark.parametrize("name", ["clean_mpcs_loss", "eval_noisy_mpcs_loss"])
@pytest.mark.parametrize("both", [False, True])
def test_of_several_evaluation_sets_those_of_the_rule_are_recorded(
    tmp_path: Path, name: str, both: bool
) -> None:
    directions: Any = (
        {name: "min", "clean_accuracy": "max", "noisy_accuracy": "max"}
        if both
        else {name: "min"}
    )
    settings = {"metric_for_best_model": name, "load_best_model_at_end": True}
    best = SelectCheckpoint(tmp_path / "selector", SelectionRule(name, directions))
    trainer = trainer_in(tmp_path / "trainer", best, **settings)
    valid = plain.data()[1]
    trainer.eval_dataset = {"clean": Rows(valid, 30), "noisy": Rows(valid, 11)}
    trainer.train()
    assert best.selector.best is not None
    assert len(best.selector.epochs) == plain.EPOCHS
    assert trainer.state.best_metric == best.selector.best.values[name]
    loaded = trainer.model.state_dict()
    assert all(
        torch.equal(loaded[key], value) for key, value in best.selector.load_best().items()
    )


@pytest.mark.parametrize("size", [1, 5, 30])
@pytest.mark.parametrize(
    "settings", [{"eval_do_concat_batches": False}, {"batch_eval_metrics": True}]
)
def test_batches_that_are_not_concatenated_give_the_same_values(
    tmp_path: Path, size: int, settings: dict[str, Any]
) -> None:
    usual, parts = (trainer_in(tmp_path, **given) for given in ({}, settings))
    rows = Rows(plain.data()[1], size)
    values, again = usual.evaluate(rows), parts.evaluate(rows)
    rounding = 1e-12 if "batch_eval_metrics" in settings else 0.0
    for name in ("eval_mpcs_loss", "eval_accuracy"):
        assert again[name] == pytest.approx(values[name], rel=rounding, abs=0.0)


def test_batches_with_several_outputs_and_kinds_of_labels() -> None:
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    compute = compute_metrics({"accuracy": Accuracy(3)})
    parts = [
        ((logits[rows].numpy(), None), labels[rows].numpy()) for rows in ([0, 1, 2], [3])
    ]
    batches = EvalPrediction(
        [outputs for outputs, _ in parts], [target for _, target in parts]
    )  # type: ignore[arg-type]
    assert compute(batches) == compute(EvalPrediction(logits.numpy(), labels.numpy()))
    with Refused("one_kind_of_labels", "label_names", 2):
        compute(EvalPrediction(logits.numpy(), (labels.numpy(), labels.numpy())))


def test_each_trial_of_a_search_has_a_selector_of_its_own(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path / "selector", plain.rule(mpcs="mpcs_loss"), patience=9)
    trainer = trainer_in(tmp_path / "trainer", best)
    trainer.model_init, trainer.optimizer, trainer.lr_scheduler = (
        lambda trial: Classifier(),
        None,
        None,
    )
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    found = trainer.hyperparameter_search(
        lambda trial: {"num_train_epochs": trial.suggest_int("num_train_epochs", 1, 3)},
        compute_objective=lambda metrics: metrics["eval_mpcs_loss"],
        n_trials=3,
        hp_name=lambda trial: f"trial-{trial.number}",
        sampler=optuna.samplers.GridSampler({"num_train_epochs": [1, 2, 3]}, seed=0),
        backend="optuna",
        direction="minimize",
    )
    runs = [
        CheckpointSelector.open(tmp_path / "selector" / f"trial-{number}")
        for number in range(3)
    ]
    assert sorted(len(run.epochs) for run in runs) == [1, 2, 3]
    assert len(runs[int(found.run_id)].epochs) == found.hyperparameters["num_train_epochs"]
    assert best.selector.folder == runs[-1].folder
    assert {run.patience for run in runs} == {9}


def test_trials_without_names_are_refused(tmp_path: Path) -> None:
    trainer = trainer_in(
        tmp_path / "trainer",
        SelectCheckpoint(tmp_path / "best", plain.rule(mpcs="mpcs_loss")),
    )
    trainer.model_init, trainer.optimizer, trainer.lr_scheduler = (
        lambda trial: Classifier(),
        None,
        None,
    )
    for name in (
        None,
        lambda trial: "../outside",
        lambda trial: str(tmp_path / "absolute"),
    ):
        with Refused("trial_name", "hp_name"):
            trainer.hyperparameter_search(
                lambda trial: {}, n_trials=1, backend="optuna", hp_name=name
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
            state, metrics = (
                TrainerState(epoch=float(epoch), global_step=epoch),
                {"eval_loss": score},
            )
            best.on_evaluate(
                settings, state, TrainerControl(), metrics=metrics, model=Classifier()
            )
    assert best.selector.folder == (tmp_path / "restart-1" if epochs else tmp_path)
    assert [epoch.values["loss"] for epoch in best.selector.epochs] == [0.4] * epochs


@pytest.mark.parametrize(
    "settings", [{"metric_for_best_model": None}, {"metric_for_best_model": "accuracy"}]
)
def test_a_scheduler_that_would_follow_no_loss_is_refused(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    best = SelectCheckpoint(tmp_path / "best", plain.rule(mpcs="mpcs_loss"))
    with Refused("followed_metric", "metric_for_best_model"):
        trainer_in(tmp_path / "trainer", best, **settings).train()


def test_names_end_in_loss_if_and_only_if_lower_is_better() -> None:
    prediction = EvalPrediction((2 * np.eye(3, dtype=np.float32), None), np.arange(3))
    metrics = {
        "mpcs": MetaPatternConcernScore(3),
        "danger_loss": MetaPatternConcernScore(3),
        "accuracy": Accuracy(3),
    }
    assert list(compute_metrics(metrics)(prediction)) == [
        "mpcs_loss",
        "danger_loss",
        "accuracy",
    ]
    with Refused("named_loss", "'noloss'", type="Accuracy"):
        compute_metrics({"noloss": Accuracy(3)})
    with Refused("recorded_scalar", "metric rates_loss"):
        compute_metrics({"rates": ClassErrorRates(3)})(prediction)

"""Decide loans by what each would cost, not by one cost for all: the data are simulated.

Each applicant asks for an amount. If a granted loan is not repaid, the part without security is lost. If a loan that
would have been repaid is refused, its interest is lost. Both costs differ from row to row, and are known beforehand.
"""

import torch
from torch import Tensor, nn

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import DecisionRule, SoftmaxMarginLoss, estimate_decisions

NAMES = ["repays", "defaults"]  # to decide "repays" is to grant the loan
CONCERN = ConcernSpec(NAMES, dangerous=[["defaults", "repays"]])


def draw(number: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Simulate applicants: inputs (N, 4), labels, and costs in euros, (N, 2, 2), by true class and decision."""
    inputs = torch.randn(number, 4, generator=generator)
    amount = (
        5000 * (inputs[:, 0] / 4 + 0.6 * torch.randn(number, generator=generator)).exp()
    )
    interest = amount * (0.05 + 0.2 * torch.rand(number, generator=generator))
    chance = (inputs @ torch.tensor([0.5, 1.0, -1.2, 0.3]) - 1.5).sigmoid()
    target = (torch.rand(number, generator=generator) < chance).long()
    unsecured = 0.1 + 0.8 * torch.rand(number, generator=generator)
    return (
        inputs,
        target,
        costs_if_wrong(torch.stack([unsecured * amount, interest], dim=1)),
    )


def train(inputs: Tensor, target: Tensor, costs: Tensor, *, by_costs: bool) -> nn.Module:
    """Train by cross entropy or, ``by_costs``, with a margin of 1 nat for an error of typical cost."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    loss = SoftmaxMarginLoss(CONCERN, margin=1.0 if by_costs else 0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    typical = 2 * costs.mean()  # half of the costs are 0
    for _ in range(300):
        optimizer.zero_grad()
        loss(model(inputs), target, costs=costs / typical).backward()
        optimizer.step()
    return model


def main() -> None:
    """Compare decisions by each row's costs with decisions by one matrix of mean costs."""
    generator = torch.Generator().manual_seed(0)
    known = draw(5000, generator)
    validation = draw(2000, generator)
    inputs, target, costs = draw(10_000, generator)
    fixed = ConcernSpec(
        NAMES, weights=known[2].mean(dim=0).tolist(), dangerous=[["defaults", "repays"]]
    )
    plain = train(*known, by_costs=False)
    by_costs = train(*known, by_costs=True)
    with torch.no_grad():
        logits, of_new = plain(validation[0]), plain(inputs)
        rule = DecisionRule(CONCERN).fit(logits, validation[1], costs=validation[2])
        decisions = {
            "by one matrix": DecisionRule(fixed).fit(logits, validation[1])(of_new),
            "by the costs of each row": rule(of_new, costs),
        }
        # Margins shift the probabilities of the classes, which a scale and a bias for each class correct.
        trained = DecisionRule(CONCERN, calibration="vector")
        trained.fit(by_costs(validation[0]), validation[1], costs=validation[2])
        decisions["also trained with them"] = trained(by_costs(inputs), costs)
        estimates = estimate_decisions(rule.assess(of_new, costs), CONCERN, target)

    result = evaluate(
        decisions, target, class_names=NAMES, costs=costs, metrics=["mean_cost"]
    )
    for name in decisions:
        low, high = result.interval("mean_cost", name) or (torch.nan, torch.nan)
        print(
            f"{name}: {result.value('mean_cost', name):.0f} euros per applicant ({low:.0f} to {high:.0f})"
        )
    for row in result.comparisons:
        if row.first == "by one matrix":
            low, high = -row.paired.high, -row.paired.low
            print(
                f"{row.second}: saves {-row.paired.difference:.0f} euros per applicant ({low:.0f} to {high:.0f})"
            )
    print(estimates[1])


if __name__ == "__main__":
    main()

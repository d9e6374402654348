"""The page of `mpcs explore` in a browser: its numbers against the package's, its files, and what it asks for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, load_concern
from mpcs_torch.evaluation.held_rows import HeldRows
from mpcs_torch.functional import (
    bounded_mean_interval,
    clopper_pearson,
    least_concern_decision,
    risk_threshold,
    shift_priors,
)
from mpcs_torch.functional.concern.limited_rate import UnattainableLimitError
from mpcs_torch.io.packaged import packaged_file, packaged_names
from mpcs_torch.learning.choice import FACTORS, decide, harm_of
from mpcs_torch.learning.rule_limit import report_on
from mpcs_torch.report.explore import write_explorer
from tests.browser.chromium import Page
from tests.browser.test_reports import CHECKS, SCHEMES, WIDTHS

CASES = 1000
LINK = "#s=%%7B%%22e%%22:%s,%%22l%%22:%s,%%22p%%22:%s,%%22o%%22:[],%%22r%%22:null,%%22f%%22:0.5,%%22d%%22:false%%7D"
NAMES = ("benign", "cyst", "inflamed", "malignant")
NAMED = "classes: [benign, cyst, inflamed, malignant]\n"
HOSTILE = [
    '</script><script>alert("x")</script>',
    "<img src=x onerror=alert(1)>",
    "a: b # c",
    "'single' \"double\"",
    "ü\u2028 0x1",
]


def held(
    names: tuple[str, ...] | list[str] = NAMES, rows: int = 300, models: int = 3, *, column: str = "site"
) -> HeldRows:
    """Rows of some models, of which the last class is rare, in three groups."""
    generator = torch.Generator().manual_seed(0)
    frequencies = torch.tensor([1.0] * (len(names) - 1) + [0.2])
    target = torch.multinomial(frequencies, rows, replacement=True, generator=generator)
    probs = {}
    for model in range(models):
        noise = torch.randn(rows, len(names), generator=generator)
        probs[f"model {model}"] = (2 * torch.eye(len(names))[target] + noise).softmax(dim=1)
    return HeldRows(list(names), probs, target, {column: (["north", "<b>south</b>", "east"], torch.arange(rows) % 3)})


@pytest.fixture(scope="module")
def rows() -> HeldRows:
    return held()


def opened(page: Page, path: Path, *, width: int = 1280, scheme: str = "light", link: str = "") -> Page:
    page.open(path, width=width, scheme=scheme)
    if link:
        page.evaluate(
            f"new Promise(done => {{ addEventListener('hashchange', done); location.hash = {json.dumps(link)}; }})"
        )
    return page


def settled(page: Page) -> None:
    page.evaluate("new Promise(done => setTimeout(done, 600))")


def random_state(generator: np.random.Generator, classes: int, frequencies: Tensor) -> dict[str, Any]:
    """Costs with ties and zeros, dangerous errors among those that cost something, a price, frequencies and limits."""
    kind = generator.integers(3)
    if kind == 0:
        costs = generator.choice([0.5, 1.0], (classes, classes))
    elif kind == 1:
        costs = generator.integers(0, 5, (classes, classes)).astype(float)
    else:
        costs = generator.lognormal(1, 2, (classes, classes))
    costs[0, 1] = max(costs[0, 1], 1.0)
    np.fill_diagonal(costs, 0)
    dangerous = (costs > 0) & (generator.random((classes, classes)) < 0.6)
    dangerous[0, 1] = True
    priors = (100 * generator.dirichlet(np.ones(classes))).tolist() if generator.random() < 0.5 else None
    of = [*range(classes)] if priors is not None else [*range(classes), None]
    limited = generator.permutation(len(of))[: generator.integers(3)]
    return {
        "costs": costs.tolist(),
        "dangerous": dangerous.tolist(),
        "refer": float(generator.choice([0.1, 0.5, 2.0])) if generator.random() < 0.5 else None,
        "priors": priors,
        "limits": [{"of": of[place], "atMost": float(generator.choice([0.05, 0.1, 0.3]))} for place in limited],
    }


def expected(rows: HeldRows, probs: Tensor, state: dict[str, Any]) -> dict[str, Any]:
    """Compute what the package says of a state: decisions by public functions, and means by `report_on`."""
    classes = len(rows.class_names)
    dangerous = [
        [NAMES[i], *(NAMES[j] for j in range(classes) if state["dangerous"][i][j])]
        for i in range(classes)
        if any(state["dangerous"][i])
    ]
    spec = ConcernSpec(NAMES, weights=state["costs"], dangerous=dangerous, refer=state["refer"])
    priors = None if state["priors"] is None else torch.tensor(state["priors"], dtype=torch.float64)
    priors = None if priors is None else priors / priors.sum()  # they count in proportion
    frequencies = rows.target.bincount(minlength=classes).double() / len(rows.target)
    given = {} if priors is None else {"priors": priors, "training_priors": frequencies}
    decisions = least_concern_decision(probs, concern=spec, from_logits=False, **given)
    shifted = probs.double() if priors is None else shift_priors(probs.double(), **given)
    is_dangerous = spec.dangerous_pairs()
    kept = decisions.clone()
    for limit in state["limits"]:
        of = limit["of"]
        mask = is_dangerous.double() if of is None else torch.zeros(classes, classes, dtype=torch.float64)
        if of is not None:
            mask[of] = is_dangerous[of].double()
        risk = (shifted * mask.T[decisions]).sum(dim=1).float()  # of a referral, that of the last class: replaced
        risk[decisions < 0] = torch.inf
        counted = torch.ones_like(rows.target, dtype=torch.bool) if of is None else rows.target == of
        loss = is_dangerous[rows.target, decisions] & (decisions >= 0)
        try:
            confidence = 1 - 0.05 / len(state["limits"])
            threshold = risk_threshold(
                risk[counted], loss[counted], max_loss=limit["atMost"], confidence=confidence
            ).threshold
        except UnattainableLimitError:
            threshold = torch.tensor(-torch.inf)
        kept[~(risk < threshold)] = -1
    report = report_on(kept, rows.target, spec, priors=priors)
    at = {"coverage": report.coverage, "dangerous_rate": report.dangerous_rate, "cost": report.cost} | dict(
        report.at_priors
    )
    right = (kept == rows.target).double()
    weights = torch.ones_like(right) if priors is None else priors[rows.target] / frequencies[rows.target]
    return {
        "coverage": at["coverage"],
        "dangerous": at["dangerous_rate"],
        "cost": at["cost"],
        "accuracy": (right @ weights / len(right)).item(),
        "byClass": {NAMES.index(name): (errors.errors, errors.samples) for name, errors in report.by_class.items()},
        "decisions": kept,
    }


def test_the_page_agrees_with_the_package_on_random_states(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    generator = np.random.default_rng(0)
    frequencies = rows.target.bincount().double()
    states = [random_state(generator, len(NAMES), frequencies) for _ in range(CASES)]
    for start in range(0, CASES, 100):
        part = states[start : start + 100]
        found = page.evaluate(
            f"{json.dumps(part)}.map((state) => explorer.page.compute(state).map("
            "({means, byClass}) => ({means, byClass})))"
        )
        for state, by_model in zip(part, found, strict=True):
            for of_page, probs in zip(by_model, rows.probs.values(), strict=True):
                of_package = expected(rows, probs, state)
                for name in ("coverage", "dangerous", "cost", "accuracy"):
                    assert of_page["means"][name]["value"] == pytest.approx(of_package[name], rel=1e-9, abs=1e-9), (
                        name,
                        state,
                    )
                for label, counts in of_package["byClass"].items():
                    assert tuple(of_page["byClass"][label][:2]) == counts
                    assert of_page["byClass"][label][2] == pytest.approx(clopper_pearson(*counts), abs=1e-9)


def test_intervals_agree_with_the_package(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    for k, n in [(0, 1), (0, 200), (3, 10), (14, 76), (500, 100_000), (100_000, 100_000)]:
        assert page.evaluate(f"explorer.clopperPearson({k}, {n})") == pytest.approx(clopper_pearson(k, n), abs=1e-9)
    generator = np.random.default_rng(1)
    for _ in range(30):
        values, per = generator.lognormal(0, 2, 6).tolist(), generator.uniform(0.2, 3, 6).tolist()
        counts, most = generator.integers(0, 40, 6).tolist(), 200.0
        counts[0] += 1
        own = page.evaluate(
            f"explorer.meanInterval({json.dumps(list(zip(values, per, counts, strict=True)))}, [[0, 1], [{most}, 1]])"
        )
        columns = (torch.tensor([*values, 0.0, most]), torch.tensor([*counts, 0, 0]))
        ends = bounded_mean_interval(*columns, per=torch.tensor([*per, 1.0, 1.0]))
        assert own == pytest.approx(ends, abs=3e-3 * (ends[1] - ends[0]))


def test_the_page_shows_what_it_computes(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    """A click, words, a price, a frequency and a limit reach the cells."""
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    state = page.evaluate("""(() => {
      const set = (query, value) => {
        const input = document.querySelector(query);
        input.value = value;
        input.dispatchEvent(new Event("input", {bubbles: true}));
      };
      document.querySelector("[data-pair='0 1']").click();
      set("#cost", 0.25);
      document.getElementById("editor").requestSubmit();
      set("#worse-true", 3); set("#worse-decision", 0);
      set("#than-true", 0); set("#than-decision", 3); set("#times", 20);
      document.getElementById("words").requestSubmit();
      set("#least", 20);
      set("#refer", 0.5);
      set("[data-limit='3']", 30);
      set("[data-prior='3']", "10,5");
      return explorer.page.stateNow();
    })()""")
    assert (state["costs"][0][1], state["costs"][3][0], state["refer"]) == (0.25, 20, 0.5)
    assert state["dangerous"] == [[i == 3 and j == 0 for j in range(4)] for i in range(4)]
    assert state["priors"][3] == pytest.approx(0.105), "a decimal comma is one"
    assert state["limits"] == [{"of": 3, "atMost": 0.3}]
    shown = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#results [data-id]')]"
        ".map(({dataset}) => [dataset.id, JSON.parse(dataset.value)]))"
    )
    for place, probs in enumerate(rows.probs.values()):
        of_package = expected(rows, probs, state)
        for name in ("coverage", "dangerous", "cost", "accuracy"):
            assert shown[f"{place} now {name}"] == pytest.approx(of_package[name], rel=1e-9, abs=1e-12)
            change = shown[f"{place} now {name}"] - shown[f"{place} usual {name}"]
            assert shown[f"{place} change {name}"] == pytest.approx(change, abs=1e-9)
    settled(page)
    groups = page.evaluate(
        "[...document.querySelectorAll('#column-0 [data-id]')].filter(({dataset}) => dataset.id.endsWith('accuracy'))"
        ".map(({dataset}) => [dataset.id, JSON.parse(dataset.value)])"
    )
    assert len(groups) == 9
    link = page.evaluate("location.hash")
    page.evaluate("document.getElementById('undo').click()")
    assert page.evaluate("explorer.page.stateNow().priors") is None
    page.evaluate("document.getElementById('redo').click()")
    assert page.evaluate("explorer.page.stateNow()") == state
    opened(page, tmp_path / "page.html", link=link)
    again = page.evaluate("explorer.page.stateNow()")
    assert {name: again[name] for name in ("costs", "dangerous", "refer", "priors", "limits")} == {
        name: state[name] for name in ("costs", "dangerous", "refer", "priors", "limits")
    }
    assert page.complaints == []


def test_the_frontier_is_that_of_the_factors(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    spec = ConcernSpec(NAMES, weights=[[0, 1, 1, 1], [2, 0, 1, 1], [3, 1, 0, 1], [20, 9, 5, 0]], dangerous=9)
    write_explorer(rows, spec, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    points = page.evaluate(
        f"{list(FACTORS)}.map((factor) => explorer.frontierPoint(explorer.page.rows, explorer.page.rows.models[0],"
        " explorer.page.stateNow(), factor))"
    )
    probs, dangerous = rows.probs["model 0"], spec.dangerous_pairs()
    for factor, point in zip(FACTORS, points, strict=True):
        decisions = decide(probs, harm_of(spec).float(), factor)
        rates = [
            dangerous[rows.target, decisions].double().mean().item(),
            (decisions == rows.target).double().mean().item(),
        ]
        assert point == pytest.approx(rates, abs=1e-9)


def concerns() -> list[ConcernSpec]:
    generator = np.random.default_rng(2)
    drawn = [random_state(generator, 4, torch.ones(4)) for _ in range(30)]
    return [
        ConcernSpec(NAMES, weights=each["costs"], refer=each["refer"], dangerous=[["benign", "cyst"]]) for each in drawn
    ] + [
        ConcernSpec(NAMES, releases=[["benign", "cyst", "inflamed"], ["malignant", "cyst"]], factor=0.1),
        ConcernSpec(NAMES, dangerous=[["malignant", "benign"]], factor=1e-7),
        ConcernSpec(
            NAMES, weights=[[0, 1, 1, 1]] * 3 + [[8, 8, 8, 0]], dangerous=8, refer=2, answers={"benign or cyst": 0.5}
        ),
        ConcernSpec(NAMES, concession=0.01),
    ]


def test_a_concern_goes_from_yaml_to_the_page_and_back(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    from mpcs_torch.concern.files import save_concern

    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    for number, spec in enumerate(concerns()):
        path, back = tmp_path / f"{number}.yaml", tmp_path / f"back{number}.yaml"
        save_concern(spec, path, comment="of: clinicians")
        assert page.evaluate(f"explorer.page.openYaml({json.dumps(path.read_text())})"), page.evaluate(
            "document.getElementById('problem').textContent"
        )
        back.write_text(page.evaluate("explorer.page.yamlText()"))
        assert load_concern(back) == spec
        # An edit and its opposite leave the costs as they are; a change alone is written as weights or releases.
        page.evaluate("explorer.page.change(null, {source: null})")
        back.write_text(page.evaluate("explorer.page.yamlText()"))
        same = load_concern(back)
        assert same.matrix().equal(spec.matrix())
        assert same.dangerous_pairs().equal(spec.dangerous_pairs())
        assert same.refer == spec.refer


def test_files_in_other_hands_are_read_as_by_the_package(page: Page, tmp_path: Path) -> None:
    for name in packaged_names("concerns"):
        spec, text = load_concern(name), packaged_file("concerns", name).read_text()
        write_explorer(held(list(spec.classes), rows=60), None, tmp_path / "page.html")
        opened(page, tmp_path / "page.html")
        assert page.evaluate(f"explorer.page.openYaml({json.dumps(text)})"), name
        (tmp_path / "back.yaml").write_text(page.evaluate("explorer.page.yamlText()"))
        assert load_concern(tmp_path / "back.yaml") == spec


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("classes: [a, b]", "classes must be benign"),
        ("classes: [benign, cyst, inflamed, malignant]\nwieghts: 1", "wieghts must be one of"),
        ("classes: [benign, cyst, inflamed, malignant]\nfactor: 2", "factor must be above 0"),
        ("classes: [benign, cyst, inflamed, malignant]\nreleases: [[benign, no]]", "no must be in quotes"),
        ("classes: [benign, cyst, inflamed, malignant]\nreleases: [[benign, lump]]", "is not a class"),
        ("classes: [benign, cyst", "a comma or ] must follow"),
        ("- benign", "must be a mapping"),
        ("classes: &a [benign]", "anchors"),
        ("", "must be a mapping"),
        (f"{NAMED}factor: 050", "050 is no plain number"),
        (f"{NAMED}factor: 1e-3", "1e-3 is no plain number"),
        (f"{NAMED}---\nfactor: 0.1", "one document"),
        (f"{NAMED}releases: [[benign, cyst]]\ndangerous: [[cyst, benign]]", "cannot be combined"),
        (f"{NAMED}releases: [[benign, benign]]", "for itself"),
        (f"{NAMED}dangerous: 3", "dangerous must be a list"),
        (
            f"{NAMED}weights: {[[0, 0, 1, 1]] + [[1] * 4] * 3}\ndangerous: [[benign, cyst]]",
            "must have a weight above 0",
        ),
        (f"{NAMED}concession: banana", "concession must be"),
        (f"{NAMED}answers: 3", "answers must map"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_a_file_that_breaks_a_rule_changes_nothing(
    page: Page, rows: HeldRows, tmp_path: Path, text: str, problem: str
) -> None:
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    before = page.evaluate("explorer.page.stateNow()")
    assert page.evaluate(f"explorer.page.openYaml({json.dumps(text)})") is False
    assert problem in page.evaluate("document.getElementById('problem').textContent")
    assert page.evaluate("explorer.page.stateNow()") == before


@pytest.mark.parametrize(
    "link", ["#s=%7B", "#s=null", "#s=%7B%22e%22:[[0,9,1,1]],%22l%22:[],%22o%22:[],%22p%22:null,%22r%22:null%7D"]
)
def test_a_link_that_does_not_fit_is_left_out(page: Page, rows: HeldRows, tmp_path: Path, link: str) -> None:
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html", link=link)
    assert page.evaluate("explorer.page.stateNow().costs[0][1]") == 1
    assert "does not fit" in page.evaluate("document.getElementById('problem').textContent")


def test_hostile_names_and_groups_are_text(page: Page, tmp_path: Path) -> None:
    names = [name.replace("\u2028", " ") for name in HOSTILE]
    write_explorer(held(names, column="<script>alert(2)</script>"), None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    settled(page)
    assert page.evaluate("[...document.querySelectorAll('#classes tbody th')].map((cell) => cell.textContent)") == names
    assert page.evaluate("document.querySelectorAll('main img, main script[src], #groups b').length") == 0
    assert "<b>south</b>" in page.evaluate("document.getElementById('groups').textContent")
    (tmp_path / "back.yaml").write_text(page.evaluate("explorer.page.yamlText()"))
    assert list(load_concern(tmp_path / "back.yaml").classes) == names
    assert page.complaints == []


@pytest.mark.parametrize("classes", [2, 4, 10, 50])
def test_a_page_is_sound_at_every_width_in_both_themes_and_asks_for_nothing(
    page: Page, tmp_path: Path, classes: int
) -> None:
    names = [f"class {number}" for number in range(classes)]
    write_explorer(held(names, rows=400, models=1 + classes % 3), None, tmp_path / "page.html")
    data = 400 * (4 + (1 + classes % 3) * 4 * classes + 4) * 4 / 3
    assert (tmp_path / "page.html").stat().st_size < data + 1_000_000
    faults = []
    for scheme in SCHEMES:
        for width in WIDTHS:
            opened(page, tmp_path / "page.html", width=width, scheme=scheme)
            settled(page)
            found = [*page.evaluate(CHECKS), *page.complaints]
            faults += [f"{width} pixels, {scheme}: {fault}" for fault in found]
            assert [url for url in page.requests if not url.startswith(("data:", "blob:"))] == [
                (tmp_path / "page.html").resolve().as_uri()
            ]
    assert faults == []


def test_words_about_any_other_class_say_what_is_dangerous(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    page.evaluate("""(() => {
      const set = (id, value) => { document.getElementById(id).value = value; };
      set("worse-true", 3); set("worse-decision", "any"); set("times", 50);
      set("than-true", 0); set("than-decision", 3);
      document.getElementById("words").requestSubmit();
    })()""")
    state = page.evaluate("explorer.page.stateNow()")
    assert state["costs"][3] == [50, 50, 50, 0]
    assert state["dangerous"] == [[i == 3 and j != 3 for j in range(4)] for i in range(4)]
    yaml = page.evaluate("explorer.page.yamlText()")
    assert "# malignant for any other class is about 50 times as bad as benign for malignant" in yaml
    page.evaluate("explorer.page.change(null, {costs: explorer.page.initial.costs})")
    assert "about 50" not in page.evaluate("explorer.page.yamlText()"), "what no longer holds is not written"
    page.evaluate("explorer.page.change(null, {isDearest: false})")
    page.evaluate("""(() => {
      document.querySelector("[data-pair='3 0']").click();
      const cost = document.getElementById("cost");
      for (const text of ["0", "0.", "0.5"]) {
        cost.value = text;
        cost.dispatchEvent(new Event("input", {bubbles: true}));
      }
    })()""")
    assert page.evaluate("explorer.page.stateNow().dangerous[3][0]"), "0 was the beginning of 0.5"


def test_a_limit_goes_with_the_dangerous_errors_of_its_class(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    spec = ConcernSpec(NAMES, dangerous=[["malignant", "benign"], ["cyst", "benign"]])
    write_explorer(rows, spec, tmp_path / "page.html", reading="--label-column diagnosis")
    opened(page, tmp_path / "page.html")
    page.evaluate("explorer.page.change(null, {limits: [{of: 3, atMost: 0.1}, {of: null, atMost: 0.1}]})")
    settled(page)
    commands = page.evaluate("document.getElementById('commands').textContent")
    assert "--limit 'dangerous <= 10 % of malignant'" in commands
    assert commands.count("--label-column diagnosis") == 2
    page.evaluate("explorer.page.change(null, {priors: [1, 1, 1, 1]})")
    assert "so it is not used now" in page.evaluate("document.getElementById('results-note').textContent")
    page.evaluate("document.querySelector(\"[data-pair='3 0']\").click(); document.getElementById('dangerous').click()")
    assert page.evaluate("explorer.page.stateNow().limits") == [{"of": None, "atMost": 0.1}]


def test_the_keyboard_reaches_each_error(page: Page, rows: HeldRows, tmp_path: Path) -> None:
    write_explorer(rows, None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    reached = page.evaluate("""(() => {
      document.querySelector("#matrix [tabindex='0']").focus();
      const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
      const seen = [document.activeElement.dataset.pair];
      for (const side of ["Right", "Right", "Down", "Down", "Left", "Up", "Up", "Up"]) {
        press(`Arrow${side}`);
        seen.push(document.activeElement.dataset.pair);
      }
      document.activeElement.click();
      return [...seen, document.activeElement.id];
    })()""")
    assert reached == ["0 1", "0 2", "0 3", "1 3", "2 3", "2 1", "0 1", "0 1", "0 1", "cost"]


@pytest.mark.benchmark
def test_a_move_takes_a_tenth_of_a_second_with_many_rows(page: Page, tmp_path: Path) -> None:
    write_explorer(held([str(number) for number in range(10)], rows=100_000, models=1), None, tmp_path / "page.html")
    opened(page, tmp_path / "page.html")
    settled(page)
    times = page.evaluate("""(async () => {
      const times = [], input = document.getElementById("refer");
      for (let place = 0; place < 15; place++) {
        input.value = 0.9 - 0.05 * place;
        const start = performance.now();
        input.dispatchEvent(new Event("input", {bubbles: true}));
        times.push(performance.now() - start);
        await new Promise((done) => setTimeout(done, 50));
      }
      return times;
    })()""")
    assert sorted(times)[len(times) // 2] < 100, times

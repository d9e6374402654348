"""The site holds everything: every page, every public name, every verb; what pages refer to is there."""

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import mpcs_torch
from examples import biopsies
from mpcs_torch import load_concern_range
from mpcs_torch.cli.app import VERBS
from mpcs_torch.trainer.config import sections
from mpcs_torch.trainer.config.parts import MetricConfig, PartConfig
from mpcs_torch.trainer.config.section import Section
from tests.docs.pages import PAGES, ROOT, Block, blocks, is_of_commands, name_of

DOCS = ROOT / "docs"
REFERENCE = {path.name: path.read_text() for path in (DOCS / "reference").glob("*.md")}
PACKAGES = ("concern", "metrics", "functional", "evaluation", "learning", "calibration")


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a module of docs/hooks."""
    monkeypatch.syspath_prepend(DOCS / "hooks")
    before = set(sys.modules)
    yield import_module
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(DOCS):
            del sys.modules[name]


def listed(entries: object) -> Iterator[str]:
    """Yield the pages of a part of the navigation, which is a page, a list of parts or parts by name."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        yield from listed(list(entries.values()))
    elif isinstance(entries, list):
        for entry in entries:
            yield from listed(entry)


def test_the_navigation_lists_every_page_once() -> None:
    pages = [
        name_of(page).removeprefix("docs/") for page in PAGES if page.is_relative_to(DOCS)
    ]
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(listed(navigation)) == sorted(pages)


def test_nothing_of_the_site_is_loaded_from_elsewhere() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert settings["theme"]["font"] is False
    assert not re.search(r"https?:", (ROOT / "mkdocs.yml").read_text())
    assert not any(
        re.search(r"https?:", path.read_text())
        for path in (DOCS / "theme").glob("*.[cj]s*")
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference_once(package: str, hooks: Any) -> None:
    markers = re.findall(
        rf"<!-- reference: {package}(?: (\w+))? -->", "\n".join(REFERENCE.values())
    )
    names = [
        name
        for family in markers
        for name in hooks("public_names").names_in(package, family or None)
    ]
    assert sorted(names) == sorted(import_module(f"mpcs_torch.{package}").__all__)


def test_the_names_at_the_top_are_those_of_the_packages() -> None:
    below = {
        name
        for package in PACKAGES
        for name in import_module(f"mpcs_torch.{package}").__all__
    }
    assert set(mpcs_torch.__all__) <= below | set(PACKAGES)
    assert all(f"`{name}`" in REFERENCE["index.md"] for name in mpcs_torch.__all__)


def test_every_integration_is_in_the_reference() -> None:
    modules = {
        path.stem for path in (ROOT / "mpcs_torch" / "integrations").glob("[!_]*.py")
    }
    assert (
        set(
            re.findall(r"::: mpcs_torch\.integrations\.(\w+)", REFERENCE["integrations.md"])
        )
        == modules
    )


def test_every_section_of_a_config_is_in_the_reference() -> None:
    classes = [
        value
        for value in vars(sections).values()
        if isinstance(value, type) and issubclass(value, Section)
    ]
    names = [
        f"{part.__module__}.{part.__name__}"
        for part in classes
        if part not in (Section, PartConfig)
    ]
    assert f"{MetricConfig.__module__}.MetricConfig" in names
    assert [name for name in names if f"::: {name}\n" not in REFERENCE["config.md"]] == []


def test_the_names_of_parts_are_those_of_the_registries(hooks: Any) -> None:
    pytest.importorskip("latex2mathml")
    text = hooks("pages").on_page_markdown("<!-- parts of a config -->")
    parts = [part for part in PartConfig.__subclasses__() if part.registry]
    assert len(parts) == 5
    assert all(f"`{name}`" in text for part in parts for name in part.registry)


def test_no_line_breaks_between_a_number_and_its_percent_sign(hooks: Any) -> None:
    html = "<p>at most 5 % of <code>rate < 5 %</code> and <b>6 %</b></p><pre>7 %</pre> 8 %"
    assert hooks("pages").on_page_content(html) == (
        "<p>at most 5\xa0% of <code>rate < 5 %</code> and <b>6\xa0%</b></p><pre>7 %</pre> 8\xa0%"
    )


def test_every_verb_is_on_the_page_of_the_command_line(hooks: Any) -> None:
    text = hooks("command_line").every_verb()
    assert [
        verb
        for verb in VERBS
        if not re.search(rf"^## mpcs {verb}\b", text, flags=re.MULTILINE)
    ] == []
    assert "| `--concession" in text


def test_maths_of_docstrings_become_mathml(hooks: Any) -> None:
    pytest.importorskip("latex2mathml")
    markdown = pytest.importorskip("markdown")
    text = "Of :math:`s_0`:\n\n    .. math:: a \\quad\n        b\n\nNot in `:math:`.\n\n```\n.. math:: c\n```\n"
    html = markdown.markdown(
        text, extensions=["fenced_code", hooks("maths").MathsExtension()]
    )
    assert html.count("<math") == 3
    assert ".. math:: c" in html


def test_names_in_text_are_links_and_those_in_headings_are_not(hooks: Any) -> None:
    markdown = pytest.importorskip("markdown")
    text = "# `ConcernSpec`\n\nA `ConcernSpec(...)`, `functional.cllr`, `red`.\n"
    html = markdown.markdown(text, extensions=[hooks("names").NamesExtension()])
    assert re.findall('identifier="([^"]+)"', html) == [
        "mpcs_torch.concern.ConcernSpec",
        "mpcs_torch.functional.cllr",
    ]


def test_every_test_that_a_page_names_exists() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    page = (DOCS / "results" / "where-sources-disagree.md").read_text()
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 15
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_the_first_example_is_that_of_the_readme() -> None:
    first = next(block for block in blocks(DOCS / "index.md") if block.language == "python")
    assert first in blocks(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pictures_say_what_they_show(page: Path) -> None:
    assert all(len(text) > 5 for text in re.findall(r"!\[([^\]]*)\]\(", page.read_text()))


DRAWN_BY = {
    "examples/certainty.py": {"certainty", "certainty-means"},
    "examples/decision_curve.py": {"decision-curve"},
    "examples/detection.py": {"det"},
    "examples/detection_exercises.py": {
        "detection-gaussian",
        "detection-same-area",
        "detection-small-det",
        "detection-small-roc",
        "detection-systems",
    },
    "examples/monitor_a_deployment.py": {"monitor"},
    "examples/pictures.py": {"calibration", "clusters", "epochs", "penalties", "result"},
    "examples/random_outputs.py": {"random-outputs"},
    "examples/worst_group.py": {"worst-group"},
    "mpcs_torch/report/run.py": {"figure4"},
    "mpcs_torch/report/demo.py": {"demo"},
    "benchmarks/broken_promises.py": {"promises"},
    "benchmarks/planned_limits.py": {"plan"},
    "tests/browser/pictures.py": {"explore", "is-b-better", "score-report"},
}
"""The pictures that each file of code draws."""
RENAMED = {"figure-4": "figure4", "demo-report": "demo"}
"""Pictures that have other names on the pages than in the code."""


def test_every_picture_is_drawn_by_code_and_is_small() -> None:
    pictures = [*DOCS.glob("*.png")]
    assert sorted(RENAMED.get(path.stem, path.stem) for path in pictures) == sorted(
        set().union(*DRAWN_BY.values())
    )
    for path, names in DRAWN_BY.items():
        source = (ROOT / path).read_text()
        assert [name for name in names if name not in source] == []
    assert [path.name for path in pictures if path.stat().st_size > 100_000] == []


def test_every_picture_stands_on_a_page() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert [
        path.name
        for path in DOCS.glob("*.png")
        if f"/{path.name})" not in text and f"({path.name})" not in text
    ] == []


def links(page: Path) -> set[Path]:
    """Return the pages that a page links to, with those of files that it includes."""
    text = re.sub(
        r'^--8<-- "(\w+\.md)"$',
        lambda found: (ROOT / found[1]).read_text(),
        page.read_text(),
        flags=re.MULTILINE,
    )
    paths = re.findall(r"\]\(((?!http)[^)#\s]+\.md)", text)
    return {(page.parent / path).resolve() for path in paths}


def test_every_page_is_two_clicks_from_the_readme() -> None:
    near = links(ROOT / "README.md")
    near |= set().union(*(links(page) for page in near))
    assert [
        name_of(page)
        for page in PAGES
        if page.is_relative_to(DOCS) and page.resolve() not in near
    ] == []


NOT_RUN = {
    "docs/how-to/files-of-others.md": "a refusal, of a run of somebody else",
    "docs/how-to/frameworks/lightning.md": "tests/integrations/test_lightning.py runs it",
    "docs/how-to/frameworks/weight-averaging.md": "parts of loops of Lightning and timm",
    "docs/how-to/score-a-detector.md": "how a file of somebody is read",
    "docs/how-to/score-a-file.md": "a refusal, of a file that can be read in several ways",
    "docs/how-to/serve-a-rule.md": "tests/learning/test_onnx.py runs it",
    "docs/how-to/train-with-a-config.md": "parts of configs, and messages",
}
"""Pages with a block that no test of the pages runs, and why."""


def is_run(block: Block) -> bool:
    """Return whether a test runs a block, compares it with what is printed, reads it as costs or includes it."""
    is_table = block.text.startswith("|")
    is_concern = block.language == "yaml" and block.text.startswith("classes:")
    is_compared = block.language in ("python", "text") or is_table or is_concern
    return is_compared or is_of_commands(block) or block.text.startswith("--8<--")


def test_every_block_is_run_or_has_a_reason() -> None:
    assert {name_of(page) for page in PAGES if not all(map(is_run, blocks(page)))} == set(
        NOT_RUN
    )


def test_the_costs_on_pages_are_valid(tmp_path: Path) -> None:
    texts = [
        block.text
        for page in PAGES
        for block in blocks(page)
        if block.text.startswith("classes:")
    ]
    assert len(texts) >= 3
    for text in texts:
        (tmp_path / "concern.yaml").write_text(text)
        known = tuple(yaml.safe_load(text)["classes"])
        assert load_concern_range(tmp_path / "concern.yaml").classes == known
    assert biopsies.CONCERN.strip() in {text.strip() for text in texts}


WIDE = {
    "CONTRIBUTING.md": "its code is that of the repository, which has lines of 120 characters",
    "docs/how-to/train-with-a-config.md": "messages of commands",
}
"""Pages with wider lines of code, and why."""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_is_as_wide_as_its_column(page: Path) -> None:
    """Tables that commands print are wider, and scroll."""
    texts = [block.text for block in blocks(page)]
    included = re.findall(r'^--8<-- "(examples/.*)"$', "\n".join(texts), flags=re.MULTILINE)
    texts += [(ROOT / path).read_text() for path in included]
    lines = [
        line for text in texts for line in text.splitlines() if not line.startswith("|")
    ]
    widest = 130 if name_of(page) in WIDE else 92
    assert [line for line in lines if len(line) > widest] == []


def test_the_citation_and_the_changelog_name_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert str(citation["version"]) == project["version"]
    assert citation["license"] == project["license"]
    assert f"\n## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text()

"""The table of rules: each rule is used, each use gives the fields of its rule, and an error survives pickling."""

import ast
import builtins
import pickle
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import mpcs_torch
from mpcs_torch.error_sentences import CONCERN_PROBLEMS, HINTS, RULES
from mpcs_torch.errors import InvalidValueError, Rule, value_in_words

PLACES = {"value", "sample", "column", "count"}
"""The keyword arguments of an error that are no fields of its rule."""
OF_COMMANDS = ("demand", "refuse_given")
"""The functions that refuse options of commands."""
PACKAGE = Path(mpcs_torch.__file__).parent


def calls() -> Iterator[tuple[str, set[str | None]]]:
    """Yield the code and the names of the keyword arguments of each call that makes an error, or a rule."""
    for path in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = ast.unparse(call.func).removeprefix("options.")
            place = 1 if name in ("require", *OF_COMMANDS) else 0
            code = call.args[place] if len(call.args) > place else None
            makers = ("require", "refused", "Rule", *OF_COMMANDS)
            is_error = name in makers or name.endswith("Error")
            if is_error and isinstance(code, ast.Constant) and code.value in RULES:
                is_problem = name in ("Rule", "refused", *OF_COMMANDS)
                given = {keyword.arg for keyword in call.keywords}
                yield code.value, given if is_problem else given - PLACES


def fields_of(code: str) -> set[str]:
    texts = RULES[code], HINTS.get(code, "")
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def test_each_rule_is_used_and_each_hint_has_a_rule() -> None:
    names = {
        node.value
        for path in PACKAGE.rglob("*.py")
        if path.name != "error_sentences.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert RULES.keys() | CONCERN_PROBLEMS.keys() <= names
    assert HINTS.keys() <= RULES.keys()


def test_each_error_gives_the_fields_of_its_rule() -> None:
    # None stands for **fields.
    known = [(code, given) for code, given in calls() if None not in given]
    assert [(code, given) for code, given in known if not fields_of(code) <= given] == []


def test_no_error_is_made_of_prose() -> None:
    """Sentences have spaces or fields, codes have none."""
    others = {"PredictionsError", "TorchMetricsUserError", *dir(builtins)}
    made = [
        f"{path.name}: {ast.unparse(call)}"
        for path in PACKAGE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and (call.func.id == "Rule" or call.func.id.endswith("Error"))
        and call.func.id not in others
        and call.args
        and isinstance(call.args[0], ast.JoinedStr | ast.Constant)
        and " " in ast.unparse(call.args[0])
    ]
    assert made == []


def test_commands_refuse_options_by_rules() -> None:
    codes = {
        ast.unparse(call.args[1])
        for path in (PACKAGE / "cli").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).removeprefix("options.") in OF_COMMANDS
    }
    assert codes - {"code"} <= {repr(code) for code in RULES}


def test_an_error_is_made_again_by_pickle() -> None:
    error = Rule("class_indices", "target", last=2).broken_by(5, sample=1)
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, InvalidValueError)
    assert (str(again), again.rule, again.sample) == (str(error), error.rule, 1)


def test_a_value_is_quoted_in_a_readable_form() -> None:
    assert value_in_words(0.30000000000000004) == "0.3"
    assert value_in_words([0.1 + 0.2, float("nan")]) == "[0.3, nan]"
    assert value_in_words([0.5] * 11) == f"[{', '.join(['0.5'] * 10)}, ...]"
    assert value_in_words("a\nb") == r"'a\nb'"

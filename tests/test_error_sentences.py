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

NOT_FIELDS = {"value", "sample", "column", "count"}
"""The keyword arguments of an error that are no fields of its rule."""
OF_COMMANDS = ("demand", "refuse_given")
"""The functions that refuse options of commands."""
MAKES_A_RULE = ("Rule", "refused", *OF_COMMANDS)
"""Functions whose keyword arguments are all fields of a rule."""
CODE_IS_SECOND = ("require", *OF_COMMANDS)
"""Functions whose first argument is not the code of a rule."""
PACKAGE = Path(mpcs_torch.__file__).parent


def nodes_below(folder: Path) -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of the files in a folder, with its file."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            yield path, node


def calls_below(folder: Path) -> Iterator[tuple[Path, str, ast.Call]]:
    """Yield every call in the files of a folder: the file, the name of the function without its owner, and the call."""
    for path, node in nodes_below(folder):
        if isinstance(node, ast.Call):
            owner_or_name = node.func
            if isinstance(owner_or_name, ast.Attribute):
                yield path, owner_or_name.attr, node
            elif isinstance(owner_or_name, ast.Name):
                yield path, owner_or_name.id, node


def calls() -> Iterator[tuple[str, set[str | None]]]:
    """Yield the code and the names of the keyword arguments of each call that makes an error, or a rule."""
    for _, name, call in calls_below(PACKAGE):
        is_maker = name in (*MAKES_A_RULE, *CODE_IS_SECOND) or name.endswith("Error")
        place = 1 if name in CODE_IS_SECOND else 0
        if not is_maker or len(call.args) <= place:
            continue
        code = call.args[place]
        if isinstance(code, ast.Constant) and code.value in RULES:
            keywords = {keyword.arg for keyword in call.keywords}
            yield code.value, keywords if name in MAKES_A_RULE else keywords - NOT_FIELDS


def fields_of(code: str) -> set[str]:
    texts = RULES[code], HINTS.get(code, "")
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def test_each_rule_is_used_and_each_hint_has_a_rule() -> None:
    texts = {
        node.value
        for path, node in nodes_below(PACKAGE)
        if path.name != "error_sentences.py"
        and isinstance(node, ast.Constant)
        and isinstance(node.value, str)
    }
    assert RULES.keys() | CONCERN_PROBLEMS.keys() <= texts
    assert HINTS.keys() <= RULES.keys()


def test_each_error_gives_the_fields_of_its_rule() -> None:
    # None stands for **fields.
    known = [(code, given) for code, given in calls() if None not in given]
    assert len(known) > 300, "the calls are seen"
    assert [(code, given) for code, given in known if not fields_of(code) <= given] == []


def is_prose(argument: ast.expr) -> bool:
    """Return whether an argument is a sentence, which has spaces or fields, and not a code, which has none."""
    is_text = isinstance(argument, ast.JoinedStr | ast.Constant)
    return is_text and " " in ast.unparse(argument)


def test_no_error_is_made_of_prose() -> None:
    others = {"PredictionsError", "TorchMetricsUserError", *dir(builtins)}
    made = []
    for path, name, call in calls_below(PACKAGE):
        is_ours = name == "Rule" or name.endswith("Error")
        is_alone = isinstance(call.func, ast.Name)
        if (
            is_ours
            and is_alone
            and name not in others
            and any(map(is_prose, call.args[:1]))
        ):
            made.append(f"{path.name}: {ast.unparse(call)}")
    assert made == []


def test_commands_refuse_options_by_rules() -> None:
    codes = {
        ast.unparse(call.args[1])
        for _, name, call in calls_below(PACKAGE / "cli")
        if name in OF_COMMANDS
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

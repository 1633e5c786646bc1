"""What classes declare about their parts, checked one declaration at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpssl.io import ModelFileError
from gpssl.io._invariants import KINDS, PLAIN, PROPERTIES, Declaration, Shown, UnfitError, check
from gpssl.io._stored_classes import FORMS

NOTHING: Any = lambda _: None  # noqa: E731  (no value is an object of a file)


def fits(value: Any, text: str, **sizes: int) -> bool:
    try:
        check(value, text, sizes, NOTHING)
    except UnfitError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("None", [None], [False, 0, "None"]),
        ("'max' | 'median'", ["max", "median"], ["min", None, 3]),
        ("bool", [True, np.True_], [0, 1, None]),
        ("text", [""], [None, b"", 3]),
        ("inf", [np.inf], [-np.inf, np.nan, 1e300]),
        ("int >=1 <=5", [1, 5, np.int64(3)], [0, 6, 2.0, True, "3", None, 10**400, np.nan]),
        ("number >0", [1, 0.5, np.float32(2)], [0, -1.0, np.inf, np.nan, True, 10**400, None]),
        ("int =J", [2], [3, -2]),
        ("int <J", [1, 0], [2, 3]),
        ("list of int", [[], [1, 2], (3,)], [1, ["a"], "12", {1: 2}]),
        ("list J of text", [["a", "b"]], [["a"], ["a", "b", "c"]]),
        ("list of list 2 of int", [[[1, 2]], []], [[[1]], [1]]),
        ("[J]", [np.ones(2)], [np.ones(3), np.ones((2, 1)), [1.0, 1.0], np.ones(2, dtype=int), np.ones(2, np.float32), np.full(2, np.nan)]),
        ("[J+1 J-1]", [np.ones((3, 1))], [np.ones((2, 1)), np.ones((3, 2))]),
        (
            "[J …] rows",
            [np.ones((2, 5)), np.ones(2), np.array(["a", 3.0], object)],
            [np.ones(3), np.full(2, np.inf), np.array([{}, 1], object)],
        ),
        ("[n] unbounded", [np.array([1.0, np.inf])], [np.array([np.nan])]),
        ("[n] whole", [np.arange(3)], [np.ones(3), np.ones(3, dtype=bool)]),
        ("[n] hashes rising", [np.array([1, 5], np.uint64)], [np.array([5, 1], np.uint64), np.array([1, 5])]),
        ("[n] flags", [np.array([True])], [np.array([1])]),
        ("[n] names", [np.array(["a", "b"])], [np.array(["a", "a"]), np.array([1, 2], object)]),
        ("[n] labels", [np.array(["a"]), np.array([1, 2], object)], [np.array(["a", 1], object), np.array([[1]], "M8[s]")]),
        ("[n n] lower", [np.array([[1.0, 0], [5, 2]])], [np.eye(2)[::-1], np.array([[1.0, 1], [0, 1]]), np.diag([1.0, 0]), -np.eye(2)]),
        ("[n n] symmetric", [np.ones((2, 2))], [np.array([[1.0, 1], [0, 1]])]),
        ("[n n] covariance", [np.eye(2), np.ones((2, 2))], [-np.eye(2), np.array([[1.0, 2], [2, 1]]), np.array([[1.0, 1], [0, 1]])]),
        ("[n r] orthonormal", [np.eye(3)[:, :2], np.empty((3, 0))], [2 * np.eye(3), np.ones((3, 2)), np.zeros((3, 1))]),
        ("[n] shares", [np.array([0.25, 0.75])], [np.array([0.5, 0.6]), np.array([-1.0, 2.0])]),
        ("[n] positive", [np.ones(2)], [np.zeros(2), np.array([1e-310, 1.0])]),
        ("[n] nonnegative", [np.zeros(2)], [np.array([-1.0])]),
        ("[n] moderate", [np.array([1e150])], [np.array([-1e160])]),
        ("[n] falling", [np.array([2.0, 1.0, 1.0])], [np.array([1.0, 2.0])]),
    ],
)
def test_values_are_what_a_text_says(text: str, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert fits(value, text, J=2), f"{value!r} is {text}"
    for value in wrong:
        assert not fits(value, text, J=2), f"{value!r} is no {text}"


def test_equal_letters_are_equal_sizes_of_all_parts() -> None:
    declaration = Declaration({"mean": "[J r]", "std": "[J r] positive"}, shows="J r")
    assert declaration.check("gpssl.Weights", {"mean": np.ones((2, 3)), "std": np.ones((2, 3))}, NOTHING) == Shown(
        "gpssl.Weights", {"J": 2, "r": 3}
    )
    with pytest.raises(ModelFileError, match=r"^Weights has std of a shape that does not fit: \[2, 4\], where \[J r\] positive belongs"):
        declaration.check("gpssl.Weights", {"mean": np.ones((2, 3)), "std": np.ones((2, 4))}, NOTHING)


def test_sizes_are_those_of_the_objects_inside() -> None:
    inside = object()
    holder = Declaration({"features": "Features M D?", "basis": "[M r]"})
    look: Any = lambda value: Shown("gpssl.Features", {"M": 4}) if value is inside else None  # noqa: E731
    holder.check("gpssl.Posterior", {"features": inside, "basis": np.ones((4, 2))}, look)
    for wrong in ({"features": inside, "basis": np.ones((5, 2))}, {"features": object(), "basis": np.ones((4, 2))}):
        with pytest.raises(ModelFileError, match="Posterior has"):
            holder.check("gpssl.Posterior", wrong, look)
    with pytest.raises(ModelFileError, match="not fitted"):
        Declaration({"features": "Features D"}).check("gpssl.Posterior", {"features": inside}, look)


def test_every_stored_class_declares_its_parts_in_words_that_are_known() -> None:
    """A class without a declaration would be put together from whatever a file says."""
    n_texts = 0
    for name in FORMS._makers:
        declaration = FORMS[name].declaration
        assert declaration is not None, name
        for text in (*declaration.parts.values(), *declaration.fitted.values()):
            check_words(text)
            n_texts += 1
    assert n_texts > 250


def check_words(text: str) -> None:
    for alternative in (part.strip() for part in text.split("|")):
        if alternative.startswith("["):
            assert set(alternative.partition("]")[2].split()) <= {*KINDS, *PROPERTIES}, alternative
        elif not alternative.startswith(("'", "list", "int", "number")):
            assert alternative in (*PLAIN, "None", "inf") or alternative[0].isupper(), alternative

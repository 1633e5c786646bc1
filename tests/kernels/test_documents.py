from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from gpssl import GPSSL
from gpssl.core._features import Features
from gpssl.data._rows import SliceableRows
from gpssl.kernels import TfidfKernel

Array = NDArray[np.float64]

TEXTS = [
    "Free entry in a weekly competition! Text WIN to 80086",
    "u r late, where r u?",
    "Ok lar... joking with u",
    "WIN a free prize! Text now",
    "I am late, see you at 8",
    "ok ok ok",
    "£100 prize!!! 😀",
]


def rows_of(texts: list[str], weight: Any = None) -> SliceableRows:
    return SliceableRows(np.array(texts, dtype=object), None if weight is None else np.asarray(weight, dtype=float), checked=True)


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), sublinear_tf=True),
        TfidfVectorizer(smooth_idf=False),
        TfidfVectorizer(use_idf=False, norm="l1"),
        CountVectorizer(binary=True),
        HashingVectorizer(n_features=64),
    ],
    ids=str,
)
def test_cosine_and_squared_exponential_of_scikit_learn_s_vectors(vectorizer: Any) -> None:
    vectors = clone(vectorizer).fit_transform(TEXTS)
    expected = cosine_similarity(vectors)
    known = expected.diagonal() > 0
    kernel = TfidfKernel(vectorizer).resolve(TEXTS)
    np.testing.assert_allclose(kernel(TEXTS)[known][:, known], expected[known][:, known], atol=1e-12)
    unit = (vectors / np.sqrt(np.maximum(vectors.multiply(vectors).sum(axis=1), 1e-300)).reshape(-1, 1)).toarray()
    with_scale = TfidfKernel(vectorizer, length_scale=0.7).resolve(TEXTS)
    np.testing.assert_allclose(with_scale(TEXTS)[known][:, known], rbf_kernel(unit[known], gamma=1 / (2 * 0.7**2)), atol=1e-12)


def test_default_keeps_words_of_one_letter_and_signs() -> None:
    words = set(TfidfKernel().resolve(TEXTS).vectorizer.estimator.vocabulary_)
    assert {"u", "8", "£", "!", "😀", "free"} <= words
    assert "Free" not in words


@pytest.mark.parametrize("length_scale", [None, 0.5])
def test_documents_without_a_known_word_are_the_same_and_unlike_all_others(length_scale: float | None) -> None:
    kernel = TfidfKernel(length_scale=length_scale).resolve(TEXTS)
    gram = kernel([*TEXTS[:2], "xyzzy", "plugh", " "])
    apart = 0.0 if length_scale is None else np.exp(-1 / length_scale**2)
    np.testing.assert_allclose(gram[2:, 2:], 1.0)
    np.testing.assert_allclose(gram[2:, :2], apart)
    np.testing.assert_allclose(kernel(["xyzzy"], ["plugh", TEXTS[0]]), [[1.0, apart]])
    assert np.linalg.eigvalsh(gram).min() > -1e-12


@pytest.mark.parametrize("vectorizer", [None, TfidfVectorizer(min_df=2), TfidfVectorizer(max_features=5, smooth_idf=False)], ids=str)
def test_weights_count_as_repetitions_in_any_order(vectorizer: Any) -> None:
    weight = [1, 3, 0, 2, 1, 5, 2]
    repeated = [text for text, times in zip(TEXTS, weight, strict=True) for _ in range(times)]
    expected = TfidfKernel(vectorizer).resolve(rows_of(TEXTS, weight)).vectorizer
    order = np.random.default_rng(0).permutation(len(repeated))
    for rows in (rows_of(repeated), rows_of([repeated[i] for i in order]), rows_of(TEXTS[::-1], weight[::-1])):
        fitted = TfidfKernel(vectorizer).resolve(rows).vectorizer
        assert fitted.estimator.vocabulary_ == expected.estimator.vocabulary_
        np.testing.assert_array_equal(fitted.estimator.idf_, expected.estimator.idf_)


def test_idf_is_scikit_learn_s_on_all_rows() -> None:
    repeated = [*TEXTS, TEXTS[1], TEXTS[1], TEXTS[3]]
    theirs = TfidfVectorizer().fit(repeated)
    ours = TfidfKernel(TfidfVectorizer()).resolve(repeated).vectorizer.estimator
    assert ours.vocabulary_ == theirs.vocabulary_
    np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=1e-14)


def test_parts_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = TfidfKernel().resolve(rows_of(TEXTS * 3)).vectorizer
    monkeypatch.setattr("gpssl.data._rows.MIN_ROWS", 1)
    assert len(list(rows_of(TEXTS * 3).parts())) > 5
    np.testing.assert_array_equal(TfidfKernel().resolve(rows_of(TEXTS * 3)).vectorizer.estimator.idf_, expected.estimator.idf_)


def test_concrete_kernel_stays_as_it_is() -> None:
    kernel = TfidfKernel(length_scale=1.0).resolve(TEXTS)
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel)), kernel.resolve(["something else"])):
        np.testing.assert_array_equal(copy(TEXTS), kernel(TEXTS))
    given = TfidfKernel(FrozenEstimator(TfidfVectorizer().fit(TEXTS)))
    np.testing.assert_allclose(given(TEXTS), given.resolve(["other words"])(TEXTS))


def test_vectorizer_that_was_passed_stays_as_it_is() -> None:
    vectorizer = TfidfVectorizer()
    TfidfKernel(vectorizer).resolve(TEXTS)
    assert not hasattr(vectorizer, "vocabulary_")


def test_kernels_that_learned_different_words_can_be_told_apart() -> None:
    points = TfidfKernel().prepare(TEXTS[:3])
    names = [Features.build(TfidfKernel().resolve(texts), points).fingerprint for texts in (TEXTS, TEXTS[::-1], TEXTS[:5])]
    assert names[0] == names[1] != names[2]


def test_model_of_documents_goes_on_where_it_was() -> None:
    ssl = GPSSL(2, kernel=TfidfKernel(), random_state=0).fit(TEXTS * 4)
    again = GPSSL(2, kernel=ssl.kernel_, inducing=ssl.inducing_points_, random_state=0).fit(TEXTS * 4)
    np.testing.assert_allclose(again.transform(TEXTS), ssl.transform(TEXTS), atol=1e-7)
    assert np.isfinite(ssl.transform(["no known words whatsoever", "xyzzy"])).all()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (TfidfKernel(), "pass it to GPSSL.*resolve"),
        (TfidfKernel(length_scale=0), "length_scale must be a number above 0 or None"),
        (TfidfKernel("words"), "vectorizer must be an object"),
        (TfidfKernel(TfidfVectorizer), "vectorizer must be an object"),
    ],
    ids=["not resolved", "no length", "a string", "a class"],
)
def test_bad_parameters_raise_an_error(kernel: TfidfKernel, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel(TEXTS)


def test_fingerprint_is_the_same_in_every_process() -> None:
    """Else moments of two sites would not add."""
    code = (
        "from gpssl.core import Features; from gpssl.kernels import TfidfKernel; import numpy as np; "
        "texts = np.array(['win a prize', 'see you at 8', 'ok'], dtype=object); "
        "print(Features.build(TfidfKernel().resolve(texts), texts).fingerprint)"
    )
    printed = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(printed) == 1
    texts = np.array(["win a prize", "see you at 8", "ok"], dtype=object)
    others = np.array(["win a prize", "see you at 9", "ok"], dtype=object)
    assert Features.build(TfidfKernel().resolve(texts), texts).fingerprint + "\n" in printed
    assert Features.build(TfidfKernel().resolve(others), texts).fingerprint + "\n" not in printed

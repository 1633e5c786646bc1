"""How good predictions are, and how far to trust them: scores, calibration, risk and coverage, paired statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._calibration import (
        ReliabilityCurve,
        brier_score,
        continuous_ranked_probability_score,
        expected_calibration_error,
        interval_coverage,
        log_density,
        log_loss,
        negative_log_likelihood,
        reliability_curve,
        root_mean_squared_error,
    )
    from ._conformal import average_risk_threshold
    from ._doubts import Doubt, doubtful_labels, telling_columns
    from ._held_out import (
        HeldOutClasses,
        HeldOutNumbers,
        Labeled,
        hold_out_classes,
        hold_out_numbers,
        probabilities_of,
    )
    from ._importance import ColumnImportance, ShuffledColumns, class_losses, dimension_importance, squared_errors
    from ._label_sample import LabelSample, compare_with_others
    from ._promises import Basis, Expectation, RiskLimit
    from ._scores import (
        HIGHER_IS_BETTER,
        Estimate,
        average_ranks,
        corrected_error,
        corrected_p_value,
        holm,
        labeled_scorer,
        macro_roc_auc,
        paired_p_value,
        score_classification,
        score_regression,
    )
    from ._selective import (
        Interval,
        RiskCoverageCurve,
        augrc,
        augrc_scorer,
        aurc,
        aurc_scorer,
        bootstrap_interval,
        predict_or_abstain,
        risk_controlled_threshold,
        risk_coverage_curve,
        risk_coverage_curve_from_losses,
    )
    from ._shift import Shift, find_shift

__all__ = [
    "HIGHER_IS_BETTER",
    "Basis",
    "ColumnImportance",
    "Doubt",
    "Estimate",
    "Expectation",
    "HeldOutClasses",
    "HeldOutNumbers",
    "Interval",
    "LabelSample",
    "Labeled",
    "ReliabilityCurve",
    "RiskCoverageCurve",
    "RiskLimit",
    "Shift",
    "ShuffledColumns",
    "augrc",
    "augrc_scorer",
    "aurc",
    "aurc_scorer",
    "average_ranks",
    "average_risk_threshold",
    "bootstrap_interval",
    "brier_score",
    "class_losses",
    "compare_with_others",
    "continuous_ranked_probability_score",
    "corrected_error",
    "corrected_p_value",
    "dimension_importance",
    "doubtful_labels",
    "expected_calibration_error",
    "find_shift",
    "hold_out_classes",
    "hold_out_numbers",
    "holm",
    "interval_coverage",
    "labeled_scorer",
    "log_density",
    "log_loss",
    "macro_roc_auc",
    "negative_log_likelihood",
    "paired_p_value",
    "predict_or_abstain",
    "probabilities_of",
    "reliability_curve",
    "risk_controlled_threshold",
    "risk_coverage_curve",
    "risk_coverage_curve_from_losses",
    "root_mean_squared_error",
    "score_classification",
    "score_regression",
    "squared_errors",
    "telling_columns",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)

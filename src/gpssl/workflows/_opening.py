"""From the name of a file to what a command works on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..data._column_facts import ColumnFacts
from ..data._labels import TargetKind
from ._subject import Subject
from ._table_subject import TableSubject
from ._tissue_subject import SUFFIX, TissueSubject


def open_subject(
    path: Path,
    *,
    target: str | None = None,
    target_kind: TargetKind | None = None,
    group: str | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    columns: Sequence[ColumnFacts] | None = None,
    results: re.Pattern[str] | None = None,
) -> Subject:
    """A table or tissue, by the name of the file.

    `columns` are those of a model that will be used on it; columns with names as `results` has them are about to be written.
    """
    if path.suffix.lower() == SUFFIX:
        if keep or ignore:
            raise ValueError("Spots of tissue are compared by expression, place and color: leave out --keep and --ignore.")
        return TissueSubject(path, target=target, target_kind=target_kind, group=group)
    return TableSubject(
        path, target=target, target_kind=target_kind, group=group, keep=keep, ignore=ignore, columns=columns, results=results
    )

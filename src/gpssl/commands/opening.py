"""From the name of a file to what a command works on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..column_facts import ColumnFacts
from .subject import Subject, TargetKind
from .table_subject import TableSubject
from .tissue_subject import SUFFIX, TissueSubject


def open_subject(
    path: Path,
    *,
    target: str | None = None,
    target_kind: TargetKind | None = None,
    group: str | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    columns: Sequence[ColumnFacts] | None = None,
) -> Subject:
    """A table or tissue, by the name of the file. `columns` are those of a model that will be used on it."""
    if path.suffix.lower() == SUFFIX:
        return TissueSubject(path, target=target, target_kind=target_kind, group=group)
    return TableSubject(path, target=target, target_kind=target_kind, group=group, keep=keep, ignore=ignore, columns=columns)

"""Data frames with columns of several kinds, ordered grades and missing cells."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np

from gpssl.datasets import Table

from .examples import RESTORE, Examples, path_of
from .places import DERMATOLOGY
from .sources import BrokenTableError
from .tables import load_dermatology, load_mice_protein

KDD = "kddcup99_10pct/kddcup.data_10_percent.gz"

KDD_NAMES = """
    duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins logged_in num_compromised
    root_shell su_attempted num_root num_file_creations num_shells num_access_files num_outbound_cmds is_host_login is_guest_login count
    srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count
    dst_host_srv_count dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate
    dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate
"""

KDD_COLUMNS = KDD_NAMES.split()

KDD_CATEGORIES = ("protocol_type", "service", "flag")

ATTACKS = {
    "normal": "normal",
    "dos": "back land neptune pod smurf teardrop",
    "probe": "ipsweep nmap portsweep satan",
    "r2l": "ftp_write guess_passwd imap multihop phf spy warezclient warezmaster",
    "u2r": "buffer_overflow loadmodule perl rootkit",
}
"""The contest's kinds of attack, and the labels of each."""


def load_kdd_frame() -> Examples:
    """Load network connections of the KDD contest of 1999 (its sample of 10 %): 38 numbers, 3 categories, an attack or "normal".

    Of the 494,021 rows only the 145,586 distinct ones are kept: the others are copies, which would be on both sides of any split.
    """
    import pandas as pd

    path = path_of(KDD)
    try:
        # The categories as such, which a column kernel takes for what they are.
        frame = pd.read_csv(path, header=None, names=[*KDD_COLUMNS, "label"], dtype=dict.fromkeys(KDD_CATEGORIES, "category"))
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:  # pandas' own errors are ValueErrors
        raise BrokenTableError(f"{path} cannot be read ({error}). {RESTORE}") from error
    frame = frame.drop_duplicates(ignore_index=True)
    kinds = {f"{label}.": kind for kind, labels in ATTACKS.items() for label in labels.split()}
    unknown = sorted(set(frame["label"]) - set(kinds), key=str)
    if unknown:
        raise BrokenTableError(f"{path} has labels that are none of the contest's: {unknown[0]}. {RESTORE}")
    return Examples("kdd", frame[KDD_COLUMNS], frame["label"].map(kinds).to_numpy(dtype=str))


def load_dermatology_frame() -> Examples:
    """Load `load_dermatology` with its grades as ordered categories; age is a number, which is missing for 8 patients."""
    table = load_dermatology()
    frame = _as_frame(table)
    grades = list(DERMATOLOGY.columns[:-1])
    for name in grades:
        frame[name] = _ordered(frame[name])
    return Examples("dermatology", frame, table.y)


def load_mice_protein_frame() -> Examples:
    """Load `load_mice_protein` with its gaps; `groups` says which mouse a row is of."""
    table = load_mice_protein()
    return Examples(table.name, _as_frame(table), table.y, table.groups)


def _as_frame(table: Table) -> Any:
    import pandas as pd

    return pd.DataFrame(table.X, columns=list(table.columns))


def _ordered(column: Any) -> Any:
    """Return a column of grades: whole numbers from 0 on, in their order."""
    import pandas as pd

    highest = int(np.nanmax(column))
    return column.astype(pd.CategoricalDtype(list(range(highest + 1)), ordered=True))

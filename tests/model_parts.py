"""The members of a model file, taken out, changed and put back, with checksums that fit."""

from __future__ import annotations

import hashlib
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

Parts = dict[str, bytes]


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path: Path, parts: Parts) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def with_checksums(parts: Parts) -> Parts:
    """Return the parts with checksums that fit, where they have some: an enemy can compute them as well."""
    try:
        content = json.loads(parts["card.json"])
        known = content["checksums"]
    except (KeyError, TypeError, ValueError):
        return parts
    if not isinstance(known, dict):
        return parts
    content["checksums"] = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items() if name != "card.json"}
    card = json.dumps(content.get("card"), sort_keys=True).encode()
    content["checksums"]["card"] = hashlib.sha256(card).hexdigest()
    return {**parts, "card.json": json.dumps(content).encode()}


def npy(array: Any) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def array_of(content: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(np.lib.format.read_array(BytesIO(content), allow_pickle=False))

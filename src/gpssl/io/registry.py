"""Which classes may be in a model file, under which names. What is not here is not read, whatever a file says.

The names are part of the format. A class that is renamed keeps its name here; one that is removed, or whose parts change, goes on being
read, or else the format gets a new number.
"""

from __future__ import annotations

from .forms import Form
from .stored_kernels import KERNELS
from .stored_models import MODELS

FORMS: dict[str, Form] = {**KERNELS, **MODELS}

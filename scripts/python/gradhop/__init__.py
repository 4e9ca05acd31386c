"""Sample from neural energies over discrete inputs.

Each function starts the program ``gradhop``, makes one request and ends it. A :class:`Sampler` keeps
the program and its models alive between requests.

>>> import gradhop
>>> gradhop.infill("she [MASK] the door .", top=1)[0].text  # doctest: +SKIP
'she opened the door .'
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from .errors import Error, InputError, RunError, UnavailableError
from .process import Sampler
from .results import Filling, Fillings, Prompt, Score
from .version import __version__

if TYPE_CHECKING:
    import xarray

__all__ = [
    "Error",
    "Filling",
    "Fillings",
    "InputError",
    "Prompt",
    "RunError",
    "Sampler",
    "Score",
    "UnavailableError",
    "__version__",
    "grad",
    "infill",
    "prompt_tune",
    "sample",
    "score",
]


@overload
def infill(texts: str, **options: Any) -> Fillings: ...
@overload
def infill(texts: Iterable[str], **options: Any) -> list[Fillings]: ...
def infill(texts: str | Iterable[str], **options: Any) -> Fillings | list[Fillings]:
    """Fill the blanks of texts: see :meth:`Sampler.infill`."""
    with Sampler() as s:
        return s.infill(texts, **options)


@overload
def score(texts: str, **options: Any) -> Score: ...
@overload
def score(texts: Iterable[str], **options: Any) -> list[Score]: ...
def score(texts: str | Iterable[str], **options: Any) -> Score | list[Score]:
    """Return the log-density of texts: see :meth:`Sampler.score`."""
    with Sampler() as s:
        return s.score(texts, **options)


def prompt_tune(images: str | Path | Iterable[str | Path], **options: Any) -> list[Prompt]:
    """Find prompts for images: see :meth:`Sampler.prompt_tune`."""
    with Sampler() as s:
        return s.prompt_tune(images, **options)


def sample(model: Any = None, **options: Any) -> xarray.DataTree:
    """Draw states of an energy: see :meth:`Sampler.sample`."""
    with Sampler() as s:
        return s.sample(model, **options)


def grad(model: Any, **options: Any) -> Path:
    """Write a model with gradients: see :meth:`Sampler.grad`."""
    with Sampler() as s:
        return s.grad(model, **options)

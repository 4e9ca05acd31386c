"""Progress on a terminal or in a notebook."""

from __future__ import annotations

import sys
from typing import Any, Self


def notebook() -> Any:
    """Return IPython's display module where a notebook shows output, else None."""
    if "IPython" not in sys.modules:
        return None
    from IPython import display, get_ipython

    shell = get_ipython()
    return display if shell is not None and shell.has_trait("kernel") else None


class Bar:
    """A line of progress that replaces itself. ``shown`` says whether there is one."""

    def __init__(self, shown: bool | None = None) -> None:
        self._display = notebook()
        self._handle: Any = None
        self._drawn = False
        self.shown = shown if shown is not None else self._display is not None or sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, label: str, done: int, total: int, note: str = "") -> None:
        """Show how much is done; ``total`` is 0 where that is unknown."""
        if not self.shown:
            return
        share = f" {100 * done // total}%" if total else ""
        text = f"{label}{share}  {note}".rstrip()
        if self._display is None:
            print(f"\r\x1b[K{text[:78]}", end="", file=sys.stderr, flush=True)
        elif self._handle is None:
            self._handle = self._display.display(self._display.Pretty(text), display_id=True)
        else:
            self._handle.update(self._display.Pretty(text))
        self._drawn = True

    def clear(self) -> None:
        """Remove the line."""
        if not self._drawn:
            return
        if self._display is None:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            self._handle.update(self._display.Pretty(""))
        self._drawn = False

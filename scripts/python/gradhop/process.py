"""The program as a live process: requests and answers are lines of JSON (``gradhop serve --help``)."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from .errors import InputError, RunError, UnavailableError, error
from .progress import Bar
from .results import Filling, Fillings, Prompt, Score

if TYPE_CHECKING:
    import xarray


def program() -> str:
    """Return the path of the program: ``GRADHOP``, the one in the package, or the one on the path."""
    inside = Path(__file__).parent / "bin" / ("gradhop.exe" if sys.platform == "win32" else "gradhop")
    path = os.environ.get("GRADHOP") or (str(inside) if inside.exists() else shutil.which("gradhop"))
    if not path:
        raise UnavailableError("the program gradhop is not in this package and not on the path; set GRADHOP to it")
    return path


def flags(options: dict[str, Any]) -> list[str]:
    """Return options as flags: ``step_size=0.1`` is ``--step-size=0.1``, a list is joined by commas."""
    args = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        if isinstance(value, bool):
            value = str(value).lower()
        args.append(f"--{name.replace('_', '-')}={value}")
    return args


def lines(texts: Iterable[str]) -> list[str]:
    """Return the texts, each of which must be one line."""
    texts = list(texts)
    for k, text in enumerate(texts):
        if not text.strip() or "\n" in text or "\r" in text:
            raise InputError(f"text {k}: want one line that is not empty")
    return texts


class Sampler:
    """A live process, which keeps the two language models used last open. It serves one request at a time.

    Options of the methods are the flags of the commands, with ``_`` for ``-``: ``seed=1`` is ``--seed 1``.
    Those given here are the program's global flags, such as ``threads=4`` or ``provider="cuda"``.
    ``progress`` shows progress: by default on a terminal and in notebooks.
    """

    def __init__(self, progress: bool | None = None, **options: Any) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._last = 0
        try:
            self._process = subprocess.Popen(
                [program(), "serve", "--stdio", *flags(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                # Ctrl-C cancels a request, and does not end the process.
                start_new_session=sys.platform != "win32",
            )
        except OSError as e:
            raise UnavailableError(f"the program does not start: {e}") from e

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.communicate()

    @overload
    def infill(self, texts: str, model: str | None = None, top: int | None = None, **options: Any) -> Fillings: ...
    @overload
    def infill(
        self, texts: Iterable[str], model: str | None = None, top: int | None = None, **options: Any
    ) -> list[Fillings]: ...
    def infill(
        self, texts: str | Iterable[str], model: str | None = None, top: int | None = None, **options: Any
    ) -> Fillings | list[Fillings]:
        """Fill every ``[MASK]`` of the texts: the ``top`` most probable fillings, or with ``draws=N`` random ones.

        One text gives its :class:`Fillings`; several give a list. A text of several that cannot be filled has
        its ``error`` set, and the others are filled. Searches of several texts share batches and have no time limit.
        """
        one = isinstance(texts, str)
        rows = lines([texts] if isinstance(texts, str) else texts)
        options = {"model": model, "top": top, **options}
        if not one and not options.get("draws"):
            return self._fill(rows, options)
        log, code, out = self._request(["infill", "--file=-", "--format=jsonl", *flags(options)], rows)
        found: list[Fillings] = []
        for document in map(json.loads, out.rstrip("\n").split("\n") if out else []):
            results = [
                Filling(r["text"], r["fills"], r["logp_blanks"])
                for r in document.get("draws") or document.get("results") or []
            ]
            found.append(Fillings(document["input"], results, document.get("error"), document))
        if code != 0 and (one or len(found) < len(rows)):
            raise error(code, log)
        return found[0] if one else found

    def _fill(self, rows: list[str], options: dict[str, Any]) -> list[Fillings]:
        """Fill texts by a run over a corpus."""
        with tempfile.TemporaryDirectory() as folder:
            args = ["infill", "--file=-", "--field=text", f"--out={Path(folder, 'run')}/", *flags(options)]
            log, code, _ = self._request(args, [json.dumps({"text": row}) for row in rows], folder)
            found: list[Fillings] = []
            for shard in sorted(Path(folder, "run").glob("shard-*.jsonl")):
                for line in shard.read_text(encoding="utf-8").rstrip("\n").split("\n"):
                    document = json.loads(line)
                    result = document["infill"]
                    results = [Filling(r["text"], r["fills"], r["logp_blanks"]) for r in result.get("results") or []]
                    found.append(Fillings(document["text"], results, result.get("error"), result))
        if len(found) < len(rows):
            raise error(code, log)
        return found

    @overload
    def score(self, texts: str, model: str | None = None, **options: Any) -> Score: ...
    @overload
    def score(self, texts: Iterable[str], model: str | None = None, **options: Any) -> list[Score]: ...
    def score(self, texts: str | Iterable[str], model: str | None = None, **options: Any) -> Score | list[Score]:
        """Return the log-density of texts under a masked language model."""
        one = isinstance(texts, str)
        rows = lines([texts] if isinstance(texts, str) else texts)
        args = ["score", "--file=-", "--format=jsonl", *flags({"model": model, **options})]
        out = self._run(args, rows)
        documents = map(json.loads, out.rstrip("\n").split("\n") if out else [])
        found = [
            Score(d["text"], next(v for k, v in d.items() if k.startswith("logp_")), d["logp_per_token"], d)
            for d in documents
        ]
        return found[0] if one else found

    def prompt_tune(self, images: str | Path | Iterable[str | Path], **options: Any) -> list[Prompt]:
        """Find prompts for images: folders or files, with ``:WEIGHT`` behind the name if it is not 1."""
        if isinstance(images, (str, Path)):
            images = [images]
        args = ["prompt-tune", "--format=json", *(f"--images={image}" for image in images), *flags(options)]
        document = json.loads(self._run(args))
        return [Prompt(r["text"], r["cosine"], r) for r in document["results"]]

    def sample(self, model: Any = None, space: str | None = None, out: Any = None, **options: Any) -> xarray.DataTree:
        """Draw states of an energy and return the draws and statistics, as ArviZ reads them.

        ``model`` is an ONNX file, or a torch module that maps states to one number each, which is exported;
        ``energy="ising:8x8,0.3"`` names a known one instead. ``out`` is the folder of the run; without it the
        run is kept in memory only. Needs xarray and zarr.
        """
        import xarray

        with tempfile.TemporaryDirectory() as folder:
            args = ["sample", "--format=json", f"--out={out or Path(folder, 'run')}"]
            args += flags({"space": space, **options})
            if model is not None:
                args.insert(1, str(onnx_file(model, folder, "logp", space=space)))
            self._run(args, hidden=folder)
            store = Path(out or Path(folder, "run"), "draws.zarr")
            with xarray.open_datatree(store, engine="zarr") as tree:
                return tree.load()

    def grad(
        self, model: Any, of: str | None = None, wrt: str | None = None, out: Any = None, example: Any = None, **options: Any
    ) -> Path:
        """Write a model with gradients and return its path: ``out``, or ``NAME.grad.onnx`` beside the model.

        ``model`` is an ONNX file, or a torch module, which is exported. It needs ``out`` and ``example``: its input, or a tuple of
        them, whose first axis is the batch. Inputs have the names of forward's parameters, the output that of ``of``, or ``y``.
        """
        with tempfile.TemporaryDirectory() as folder:
            if not isinstance(model, (str, Path)) and (out is None or example is None):
                raise InputError("a torch module needs out, the file to write, and example, its inputs")
            path = onnx_file(model, folder, of or "y", example)
            target = Path(out) if out else path.with_suffix(".grad.onnx")
            args = ["grad", str(path), f"--out={target}", *flags({"of": of, "wrt": wrt, **options})]
            self._run(args, hidden=folder)
            return target

    def _run(self, args: list[str], rows: list[str] | None = None, hidden: str = "") -> str:
        log, code, out = self._request(args, rows, hidden)
        if code != 0:
            raise error(code, log)
        return out

    def _request(self, args: list[str], rows: list[str] | None = None, hidden: str = "") -> tuple[list[str], int, str]:
        """Send a request and return its log, its exit code and its output. Lines of the log with hidden, a folder, are not shown."""
        with self._lock, Bar(self._progress) as bar:
            self._last += 1
            stdin = "".join(row + "\n" for row in rows or [])
            self._send({"id": self._last, "args": args, "stdin": stdin, "progress": True})
            log: list[str] = []
            while True:
                try:
                    answer = self._answer()
                    if answer["id"] != self._last:  # of a request whose wait broke off
                        continue
                    if "log" in answer:
                        log.append(answer["log"])
                    elif "progress" in answer:
                        bar.show(**answer["progress"])
                    elif "code" in answer:
                        if answer["code"] == 0:
                            bar.clear()
                            log = [line for line in log if not hidden or hidden not in line]
                            print(*log, sep="\n", end="\n" if log else "", file=sys.stderr)
                        return log, answer["code"], answer["stdout"]
                except KeyboardInterrupt:
                    self._send({"cancel": self._last})

    def _send(self, line: dict[str, Any]) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as e:
            raise self._ended() from e

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise self._ended()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ended(self) -> BaseException:
        """Return the error of a process that has ended."""
        if self._process.stdin is None or self._process.stdin.closed:
            return RunError("the process of this Sampler was closed")
        assert self._process.stderr is not None
        self._process.stdin.close()
        said = self._process.stderr.read().splitlines()
        return error(self._process.wait() or 1, said)


def onnx_file(model: Any, folder: str, output: str, example: Any = None, space: str | None = None) -> Path:
    """Return an ONNX file: the one named, or a torch module exported into the folder by example inputs, or states of a space."""
    if isinstance(model, (str, Path)):
        return Path(model)
    torch = sys.modules.get("torch")  # who has a module has imported it
    if torch is None or not isinstance(model, torch.nn.Module):
        raise InputError(f"model is of type {type(model).__name__}; want a path or a torch module")
    if example is None:
        example = example_states(torch, space)
    example = example if isinstance(example, tuple) else (example,)
    inputs = list(inspect.signature(model.forward).parameters)[: len(example)]
    path = Path(folder, "model.onnx")
    axes = {name: {0: "batch"} for name in [*inputs, output]}
    model.eval()
    torch.onnx.export(
        model, example, path, input_names=inputs, output_names=[output], dynamic_axes=axes, dynamo=False
    )
    return path


def example_states(torch: Any, space: str | None) -> Any:
    """Return two states of a space, as a module gets them: whole numbers of a categorical space, else floats."""
    kind, _, rest = (space or "").partition(":")
    try:
        sites = int(rest.split("x")[0].split(":")[0])
    except ValueError:
        raise InputError(f"space {space!r}: want one such as binary:16 to export a torch module") from None
    return torch.zeros(2, sites, dtype=torch.int64 if kind == "categorical" else torch.float32)

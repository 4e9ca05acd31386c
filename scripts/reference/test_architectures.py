"""The committed networks are what the script makes today, and their gradients what differences give."""

import architectures
import numpy as np
import onnx
import pytest
import torch

NAMES = sorted(p.stem for p in architectures.FOLDER.glob("*.json"))
# The runtime's optimisers write operators that the standard does not have.
STANDARD = [n for n in NAMES if not n.endswith(("-fused", "-optimized"))]


def test_networks_are_current():
    assert architectures.stale(architectures.FOLDER) == []


def test_there_is_a_case_for_every_file():
    assert sorted(architectures.cases()) == NAMES


@pytest.mark.parametrize("name", STANDARD)
def test_files_are_valid(name):
    onnx.checker.check_model(architectures.FOLDER / f"{name}.onnx")


def test_optimisers_write_their_own_operators():
    for name in set(NAMES) - set(STANDARD):
        nodes = onnx.load(architectures.FOLDER / f"{name}.onnx").graph.node
        assert any(n.domain == "com.microsoft" for n in nodes), name


def test_files_are_small():
    assert sum(p.stat().st_size for p in architectures.FOLDER.iterdir()) < 1.6e6


def test_check_notices_a_change(tmp_path):
    names = ["binary-mlp", "boltzmann"]
    architectures.write(tmp_path, names)
    assert architectures.stale(tmp_path, names) == []
    path = tmp_path / "boltzmann.json"
    entry = architectures.json.loads(path.read_text())
    have = architectures.unpack(entry["output"]).copy()
    have[0] *= 1 + 1e-5
    entry["output"] = architectures.pack(have, "energy")
    path.write_text(architectures.json.dumps(entry))
    m = onnx.load(tmp_path / "binary-mlp.onnx")
    m.graph.node[0].op_type = "Tanh"
    onnx.save(m, tmp_path / "binary-mlp.onnx")
    assert architectures.stale(tmp_path, names) == ["binary-mlp.onnx", "boltzmann.json"]


@pytest.mark.parametrize("name", ["potts", "lstm-language", "clip-score", "llama", "bert"])
def test_gradients_by_one_hot_rows_are_derivatives(name):
    """The output is evaluated at mixtures of words: O changed along a random direction."""
    torch.manual_seed(0)
    case = architectures.cases()[name]()
    net = case.net.eval().double()
    ids = case.inputs["ids" if "ids" in case.inputs else "s"]
    feeds = {n: x.double() if x.is_floating_point() else x for n, x in case.inputs.items()}
    hot = torch.nn.functional.one_hot(ids, case.tables[next(iter(case.tables))]).double()
    step = torch.from_numpy(np.random.default_rng(3).standard_normal(hot.shape)) * 1e-5

    def value(rows):
        with torch.no_grad(), architectures.precision(torch.float64), architectures.OneHot({ids: rows}):
            return net(*feeds.values()).sum().item()

    _, grads, _ = architectures.differentiate(case.net, case, None, torch.float64)
    slope = (value(hot + step) - value(hot - step)) / 2
    assert slope == pytest.approx(float((torch.from_numpy(grads[0]) * step).sum()), rel=1e-6)


def test_one_hot_rows_replace_words_only():
    ids, table = torch.tensor([[2, 0, 1]]), torch.arange(6.0).reshape(3, 2)
    rows = torch.nn.functional.one_hot(ids, 3).float()
    rows[0, 1] = torch.tensor([0.5, 0.5, 0.0])
    with architectures.OneHot({ids: rows}):
        later = ids[:, 1:].reshape(2)
        assert torch.equal(torch.nn.functional.embedding(later, table), torch.tensor([[1.0, 2.0], [2.0, 3.0]]))
        assert torch.equal(torch.nn.functional.embedding(torch.tensor([0]), table), table[:1])
        assert ids.argmax() == 0

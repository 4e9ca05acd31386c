"""What samplers/store writes is what ArviZ, xarray and NumPy read, and its diagnostics are ArviZ's.

xarray opens the store as a DataTree, which is what ArviZ 1 works on; ArviZ 0.23 makes its InferenceData of that.
"""

import json
import math
import pathlib
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz as az
    import arviz_stats
    import xarray as xr

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAINS = [3, 4, 9]
DRAWS = 3001
WARMUP = 40
# kind: sites, type, and what codes stand for: scale, offset
SPACES = {
    "binary": (12, np.uint8, 1, 0),
    "spin": (5, np.int8, 2, -1),
    "categorical": (3, np.uint16, 1, 0),
    "ordinal": (4, np.int8, 1, -2),
}


def tree(path):
    return xr.open_datatree(path / "run" / "draws.zarr", engine="zarr")


def inference_data(path):
    return az.InferenceData.from_datatree(tree(path))


@pytest.fixture(params=[tree, inference_data])
def read(request):
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("store")
    subprocess.run(["go", "run", "./scripts/reference/store", str(path)], cwd=ROOT, check=True)
    return path


@pytest.fixture(params=SPACES)
def run(request, folder):
    known = json.loads((folder / request.param / "known.json").read_text())
    sites, dtype, scale, offset = SPACES[request.param]
    codes = np.array(known["codes"]).reshape(DRAWS, len(CHAINS), sites).transpose(1, 0, 2)
    known["x"] = codes * scale + offset
    for name in ("lp", "accept", "hops"):
        known[name] = np.array(known[name]).reshape(DRAWS, len(CHAINS)).T
    return request.param, folder / request.param, dtype, known


def test_arviz_reads_the_store(run, read):
    kind, path, dtype, known = run
    data = read(path)
    groups = set(data.children if read is tree else data.groups())
    assert groups == {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"}
    for group, draws in (("", DRAWS), ("warmup_", WARMUP)):
        x, stats = data[group + "posterior"], data[group + "sample_stats"]
        assert x.x.dims == ("chain", "draw", "site") and x.x.dtype == dtype
        for part in (x, stats):
            assert part.chain.values.tolist() == CHAINS and part.draw.values.tolist() == list(range(draws))
            assert part.attrs["sampler"] == "dmala" and part.attrs["seed"] == 7 and json.loads(part.attrs["space"])["kind"] == kind
        assert set(stats.data_vars) == {"lp", "acceptance_rate", "n_hops", "step_size"}
        assert all(v.dims == ("chain", "draw") for v in stats.data_vars.values())
        assert (stats.step_size > 0).all() and stats.n_hops.dtype == np.int32
    assert np.array_equal(data.posterior.x, known["x"])
    assert np.array_equal(data.sample_stats.lp, known["lp"])
    assert np.array_equal(data.sample_stats.acceptance_rate, known["accept"])
    assert np.array_equal(data.sample_stats.n_hops, known["hops"])
    assert set(np.unique(data.warmup_posterior.x)) <= set(np.unique(data.posterior.x)) or kind == "categorical"


def test_arviz_works_with_it(run, tmp_path):
    _, path, _, known = run
    data = inference_data(path)
    for summary in (az.summary(data, round_to="none"), arviz_stats.summary(tree(path), round_to="none")):
        assert len(summary) == known["x"].shape[2]
        assert np.allclose(summary["mean"].astype(float), known["x"].mean(axis=(0, 1)))
    data.to_netcdf(str(tmp_path / "data.nc"))
    again = az.from_netcdf(str(tmp_path / "data.nc"))
    assert np.array_equal(again.posterior.x, known["x"])


@pytest.fixture(scope="module")
def weighted(folder):
    """The run of SGDLD: its folder, and draws, weights and tables as Go has them."""
    path = folder / "weighted"
    known = json.loads((path / "known.json").read_text())
    known["x"] = np.array(known["codes"]).reshape(DRAWS, len(CHAINS), 4).transpose(1, 0, 2) - 2
    for name in ("lp", "weight"):
        known[name] = np.array(known[name]).reshape(DRAWS, len(CHAINS)).T
    return path, known


def test_weights(weighted, read):
    path, known = weighted
    data = read(path)
    for group, draws in ((data.sample_stats, DRAWS), (data.warmup_sample_stats, WARMUP)):
        assert set(group.data_vars) == {"lp", "acceptance_rate", "n_hops", "weight"}
        assert group.weight.dims == ("chain", "draw") and group.weight.dtype == np.float64 and group.weight.shape == (len(CHAINS), draws)
        assert (group.weight > 0).all() and len(np.unique(group.weight)) > 100 // 4
    assert np.array_equal(data.posterior.x, known["x"]) and np.array_equal(data.sample_stats.weight, known["weight"])
    with np.load(path / "draws.npz") as z:
        assert np.array_equal(z["weight"], known["weight"]) and z["warmup_weight"].shape == (len(CHAINS), WARMUP)


def test_weighted_diagnostics(weighted):
    """Means, deviations and quantiles are those of NumPy and of the empirical law, errors those of ArviZ for the
    series that a ratio of means comes to."""
    _, known = weighted
    w = known["weight"] / known["weight"].mean()
    assert known["table"]["weighted"] is True
    assert known["table"]["weight_ess"] == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-9)
    for k, row in enumerate(known["table"]["rows"]):
        x = known["lp"] if k == 0 else known["x"][:, :, k - 1].astype(float)
        mean = np.average(x, weights=w)
        assert close(row["mean"], mean), row["name"]
        assert abs(row["mean"] - x.mean()) > 1e-3, "weights make no difference"
        assert close(row["sd"], np.sqrt(np.average((x - mean) ** 2, weights=w) * w.size / (w.size - 1))), row["name"]
        assert close(row["mcse_mean"], az.mcse(mean + w * (x - mean), method="mean")), row["name"]
        assert row["ess_bulk"] > 50 and row["ess_tail"] > 50 and 0.99 < row["rhat"] < 1.1, row["name"]
        for name, p in (("q5", 0.05), ("median", 0.5), ("q95", 0.95)):
            # Between the quantiles of levels a window of the mean's width off.
            lo, hi = (np.sort(x.ravel())[np.searchsorted(np.cumsum(w.ravel()[np.argsort(x.ravel())]) / w.size, q)] for q in (p - 2e-3, p + 2e-3))
            assert lo - 1e-9 <= row[name] <= hi + 1e-9, (row["name"], name)


def close(got, want):
    return (got is None and math.isnan(want)) or got == pytest.approx(want, rel=1e-8, abs=1e-8)


def test_diagnostics_are_those_of_arviz(run):
    _, path, _, known = run
    rows = known["table"]["rows"]
    data = inference_data(path)
    assert len(rows) == 1 + known["x"].shape[2] and rows[0]["name"] == "lp"
    for row in rows:
        if row["name"] == "lp":
            x = data.sample_stats.lp.values
        else:
            site, value = re.fullmatch(r"x\[(\d+)\](?:=(\d+))?", row["name"]).groups()
            x = data.posterior.x.values[:, :, int(site)].astype(float)
            if value is not None:
                counts = np.bincount(x.astype(int).ravel())
                assert int(value) == counts.argmax()
                x = (x == int(value)).astype(float)
        assert close(row["rhat"], az.rhat(x)), row["name"]
        assert close(row["ess_bulk"], az.ess(x, method="bulk")), row["name"]
        assert close(row["ess_tail"], az.ess(x, method="tail")), row["name"]
        assert close(row["mcse_mean"], az.mcse(x, method="mean")), row["name"]
        assert close(row["mean"], x.mean()) and close(row["sd"], x.std(ddof=1)), row["name"]
        for name, p in (("q5", 0.05), ("median", 0.5), ("q95", 0.95)):
            assert close(row[name], np.quantile(x, p)), (row["name"], name)


def test_damage(folder, tmp_path):
    """Other readers notice damage too: chunks begin with a checksum."""
    path = tmp_path / "run" / "draws.zarr"
    shutil.copytree(folder / "binary" / "run" / "draws.zarr", path)
    chunk = path / "posterior" / "x" / "1.0.0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(RuntimeError, match="checksum"):
        tree(tmp_path).posterior.x.load()


def test_npz(run):
    _, path, dtype, known = run
    with np.load(path / "draws.npz") as z:
        assert z["x"].dtype == dtype and np.array_equal(z["x"], known["x"])
        assert np.array_equal(z["lp"], known["lp"]) and np.array_equal(z["n_hops"], known["hops"])
        assert z["chain"].tolist() == CHAINS and z["warmup_x"].shape[1] == WARMUP
        assert set(z.files) == {p + n for p in ("", "warmup_") for n in ("x", "lp", "acceptance_rate", "n_hops", "step_size")} | {"chain"}

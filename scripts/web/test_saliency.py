"""The page of saliency maps in a real browser: gradients of onnxruntime-web beside the native runtime's and differences."""

import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import onnxruntime
import pytest
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "report")]
import saliency
from test_report import ROOT, browser  # noqa: F401  browser is a fixture


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not shutil.which("npm"):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no npm")
    out = tmp_path_factory.mktemp("page")
    subprocess.run(["go", "build", "-o", out / "gradhop", "./cmd/gradhop"], cwd=ROOT, check=True)
    saliency.build(out / "page", out / "gradhop", ["cat", "bird", "car", "fruit", "heart", "cloud"])
    return out / "page"


@pytest.fixture(scope="module")
def page(browser, folder):  # noqa: F811
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tab = browser.page()
    tab.call("Emulation.setDeviceMetricsOverride", width=760, height=1000, deviceScaleFactor=1, mobile=False)
    tab.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/")
    tab.evaluate("new Promise(r => { const look = () => document.body?.dataset.shown ? r() : setTimeout(look, 100); look(); })")
    yield tab
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def log_p(folder):
    """log p(class k | pixels), by the original tower in the native runtime."""
    settings, tower = json.loads((folder / "settings.json").read_text()), onnxruntime.InferenceSession(saliency.CLIP / "vision_model.onnx")
    vectors = np.array(settings["vectors"])

    def value(pixels, k):
        e = tower.run(None, {"pixel_values": pixels.astype(np.float32).reshape(-1, 3, 64, 64)})[0].astype(float)
        z = settings["scale"] * e @ vectors.T / np.linalg.norm(e, axis=1, keepdims=True)
        return z[:, k] - np.log(np.exp(z).sum(1))

    return value


def ask(page, name, call):
    """Evaluate an expression of the module m and the pixels of a picture."""
    return page.evaluate(f"""(async () => {{
        const m = await import('./saliency.mjs'), image = new Image();
        image.src = '{name}';
        await image.decode();
        const pixels = m.pixelsOf(image);
        return {call};
    }})()""")


def test_page(page, tmp_path):
    """It opens without errors, shows the likeliest class of the first picture and another one when asked."""
    assert page.evaluate("document.body.dataset.shown") == "cat"
    page.evaluate("document.querySelectorAll('#classes button')[2].click()")
    page.evaluate("new Promise(r => { const look = () => document.body.dataset.shown === 'car' ? r() : setTimeout(look, 100); look(); })")
    assert page.errors() == []
    assert all(u.startswith("http://127.0.0.1:") for u in page.requests())
    page.screenshot(tmp_path / "page.png")
    assert np.asarray(Image.open(tmp_path / "page.png").convert("L")).std() > 10


def test_classes(page, folder):
    """Pictures of the gallery have the class of their folder; one mistake is allowed."""
    settings = json.loads((folder / "settings.json").read_text())
    want = [{"cats": 0, "birds": 1, "cars": 2, "fruit": 3, "hearts": 4, "weather": 5}[p.split("/")[0]] for p in saliency.PICTURES]
    have = [ask(page, name, "(await m.gradient(pixels)).k") for name in settings["pictures"]]
    assert sum(a != b for a, b in zip(want, have)) <= 1


@pytest.mark.parametrize(("name", "k"), [("emoji_u1f408.png", 0), ("emoji_u1f697.png", 1), ("emoji_u1f34c.png", 3)])
def test_gradient(page, log_p, name, k):
    """The gradient of log p(class) in the browser is the slope of the original along it; a step this small crosses few kinks."""
    answer = ask(page, name, f"m.gradient(pixels, {k}).then(r => ({{logp: r.logp[0], g: [...r.gradients], x: [...pixels]}}))")
    x, g = np.array(answer["x"]), np.array(answer["g"])
    assert log_p(x, k)[0] == pytest.approx(answer["logp"][k], abs=1e-3)
    norm, step = np.linalg.norm(g), 0.004
    slope = (log_p(x + step * g / norm, k) - log_p(x - step * g / norm, k))[0] / (2 * step)
    assert slope == pytest.approx(norm, rel=0.03)


@pytest.mark.parametrize("name", ["emoji_u1f408.png", "emoji_u1f34e.png"])
def test_explain(page, folder, log_p, name):
    """What pixels add sums up to the mean slope of the original on the way from white, and white pixels add nothing."""
    settings = json.loads((folder / "settings.json").read_text())
    answer = ask(page, name, "m.explain(pixels).then(r => ({k: r.k, adds: [...r.adds], x: [...pixels]}))")
    x, adds = np.array(answer["x"]).reshape(3, -1), np.array(answer["adds"])
    white = np.repeat(((1 - np.array(settings["mean"])) / settings["std"])[:, None], x.shape[1], 1)
    at, step = (np.arange(16) + 0.5) / 16, 2e-4
    ahead, behind = (log_p(np.stack([white + (t + s) * (x - white) for t in at]), answer["k"]) for s in (step, -step))
    assert adds.sum() == pytest.approx(((ahead - behind) / (2 * step)).mean(), rel=0.05)
    assert np.abs(adds[np.abs(x - white).max(0) < 1e-6]).max() < 1e-6

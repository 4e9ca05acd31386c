"""Builds a page that shows in a browser which pixels speak for a class.

    saliency.py OUT [--program gradhop] [--classes cat,bird,car,fruit,heart,cloud]

One `gradhop grad` of the built-in CLIP makes the file that onnxruntime-web, from npm, runs in the page. Look at it with
`python -m http.server --directory OUT`.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIP = ROOT / "models/data/clip-pictures"
WEB = "onnxruntime-web@1.30.0"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
SCALE = 23.5  # the logit scale at the end of training, see models/README.md
PICTURES = ("cats/emoji_u1f408.png", "cats/emoji_u1f63d.png", "birds/emoji_u1f986.png", "birds/emoji_u1f989.png", "cars/emoji_u1f697.png", "cars/emoji_u1f69b.png",
            "fruit/emoji_u1f34c.png", "fruit/emoji_u1f34e.png", "hearts/emoji_u1f498.png", "hearts/emoji_u1f49a.png", "weather/emoji_u2614.png", "weather/emoji_u1f327.png")  # fmt: skip


def vectors(classes: list[str]) -> np.ndarray:
    """The unit vectors of the texts of the classes."""
    tokens, tower = Tokenizer.from_file(str(CLIP / "tokenizer.json")), onnxruntime.InferenceSession(CLIP / "text_model.onnx")
    out = [tower.run(None, {"input_ids": np.array([tokens.encode(f"a picture of a {c}").ids])})[0][0] for c in classes]
    return np.stack([v / np.linalg.norm(v) for v in out])


def web(out: Path) -> None:
    """Put the runtime's files into a folder."""
    with tempfile.TemporaryDirectory() as temp:
        subprocess.run(["npm", "install", "--prefix", temp, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", WEB], check=True, capture_output=True)
        for name in FILES:
            shutil.copy(Path(temp) / "node_modules/onnxruntime-web/dist" / name, out)


def build(out: Path, program: str, classes: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, "grad", CLIP / "vision_model.onnx", "--of", "image_embeds", "--wrt", "pixel_values", "--reduce", "none", "--weights", "embed",
                    "--quiet", "-o", out / "vision.grad.onnx"], check=True)  # fmt: skip
    web(out)
    shutil.copy(HERE / "saliency.html", out / "index.html")
    shutil.copy(HERE / "saliency.mjs", out)
    for name in PICTURES:
        shutil.copy(ROOT / "models/pictures" / name, out)
    reader = json.loads((CLIP / "preprocessor_config.json").read_text())
    settings = {"classes": classes, "vectors": vectors(classes).tolist(), "scale": SCALE, "mean": reader["image_mean"], "std": reader["image_std"],
                "pictures": [Path(p).name for p in PICTURES]}  # fmt: skip
    (out / "settings.json").write_text(json.dumps(settings))


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--program", default="gradhop")
    p.add_argument("--classes", default="cat,bird,car,fruit,heart,cloud")
    a = p.parse_args()
    build(a.out, a.program, a.classes.split(","))


if __name__ == "__main__":
    main()

"""The PyTorch side of grad.py: forward, and forward plus backward, of one network.

    bench_grad_torch.py --network NAME --threads 2 [--export FILE] [--quick]

Lines on stdin: "forward N" and "both N" run N times and time them, "check" answers output and
gradient. Answers are lines of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import networks


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", required=True)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--export", type=Path, help="write NAME.onnx and NAME.f32 here first")
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    net, x, opset = networks.build(a.network, a.quick)
    if a.export:
        a.export.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for answers
            torch.onnx.export(net, (x,), a.export / f"{a.network}.onnx", input_names=["x"], output_names=["u"], opset_version=opset,
                              dynamo=a.network == "llama", external_data=False)  # the older exporter cannot do llama, the newer one fixes sizes
        x.numpy().astype(np.float32).tofile(a.export / f"{a.network}.f32")

    def forward():
        with torch.inference_mode():
            return net(x)

    def both():
        at = x.detach().requires_grad_()
        u = net(at)
        return u, torch.autograd.grad(u.sum(), at)[0]

    print(json.dumps({"ready": f"torch {torch.__version__}", "shape": list(x.shape)}), flush=True)
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "check":
            u, g = both()
            print(json.dumps({"u": u.tolist(), "g": g.flatten()[:4096].tolist()}), flush=True)
            continue
        f = {"forward": forward, "both": both}[command]
        start = time.perf_counter()
        for _ in range(int(rest[0])):
            f()
        print(json.dumps({"seconds": (time.perf_counter() - start) / int(rest[0])}), flush=True)


if __name__ == "__main__":
    main()

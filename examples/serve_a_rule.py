"""Fit a decision rule, ship it with its model as one ONNX file, and serve both."""

import json
import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import DecisionRule, Limit

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(10, releases=RELEASES, factor=0.1)


class ModelWithRule(nn.Module):
    """Model and rule; ``nn.Sequential(model, rule)`` is enough if nothing is logged."""

    def __init__(self, model: nn.Module, rule: DecisionRule) -> None:
        super().__init__()
        self.model, self.rule = model, rule

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the decision, the best class's risk, and 0 or why that is not decided."""
        assessed = self.rule.assess(self.model(inputs))
        return assessed.decision, assessed.risk, assessed.reason


def ship(folder: Path) -> None:
    """Train a model, fit its rule, and write what the service needs."""
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[:600]), labels[:600]).backward()
        optimizer.step()
    with torch.no_grad():  # by samples that chose nothing else
        logits = model(inputs[600:1500])
        rule = DecisionRule(CONCERN, Limit(0.02)).fit(logits, labels[600:1500])
    module, path = ModelWithRule(model, rule).eval(), folder / "model_with_rule.onnx"
    names = ["decision", "risk", "reason"]
    samples = torch.export.Dim("samples")
    torch.onnx.export(
        module,
        (inputs[:2],),
        path,
        dynamo=True,
        input_names=["inputs"],
        output_names=names,
        dynamic_shapes=({0: samples},),
        external_data=False,  # one file, of up to 2 GB
        verbose=False,
    )
    stored = torch.cat([inputs[1500:], torch.full((1, 64), torch.nan)])
    with torch.no_grad():
        answers = [value.numpy() for value in module(stored)]
    by_name = dict(zip(names, answers, strict=True))
    np.savez(folder / "stored_batch.npz", inputs=stored.numpy(), **by_name)
    reasons = ["", "a referral costs less", "logits are not sound", *map(str, rule.limits)]
    card = {
        "classes": CONCERN.classes,
        "reasons": reasons,
        "onnxruntime": onnxruntime.__version__,
    }
    (folder / "card.json").write_text(json.dumps({**card, "fit": rule.report.plain()}))


class Service:
    """Decide by what was shipped, with onnxruntime and NumPy, unless decisions changed."""

    def __init__(self, folder: Path) -> None:
        self.session = onnxruntime.InferenceSession(folder / "model_with_rule.onnx")
        self.card = json.loads((folder / "card.json").read_text())
        if onnxruntime.__version__ != self.card["onnxruntime"]:
            shipped, here = self.card["onnxruntime"], onnxruntime.__version__
            logging.warning("shipped with onnxruntime %s, not %s", shipped, here)
        stored = np.load(folder / "stored_batch.npz")
        decision, risk, reason = self.session.run(None, {"inputs": stored["inputs"]})
        is_same = (reason == stored["reason"]) & (decision == stored["decision"])
        has_same_risks = np.allclose(risk, stored["risk"], atol=1e-5, equal_nan=True)
        if not is_same.all() or not has_same_risks:
            others = f"{(~is_same).sum()} of {len(is_same)} stored samples"
            raise RuntimeError(f"{others} are decided differently.")

    def __call__(self, inputs: np.ndarray) -> list[dict[str, object]]:
        """Return a class or a referral for each row, and log its risk and reason."""
        outputs = zip(*self.session.run(None, {"inputs": inputs}), strict=True)
        answers = [
            {
                "decision": "refer" if decision < 0 else self.card["classes"][decision],
                "risk": float(risk) if np.isfinite(risk) else None,
                "reason": self.card["reasons"][reason],
            }
            for decision, risk, reason in outputs
        ]
        for answer in answers:
            logging.info("%s", json.dumps(answer))
        return answers


def server_of(service: Service) -> ThreadingHTTPServer:
    """Serve on a free port: a POST of a JSON list of rows is answered with decisions."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            rows = np.array(json.loads(body), dtype=np.float32)
            answer = json.dumps(service(rows)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log decisions, not requests."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def main() -> None:
    """Ship to the folder ``shipped``, start the service and ask it about three samples."""
    folder = Path("shipped")
    folder.mkdir(exist_ok=True)
    ship(folder)
    with server_of(Service(folder)) as server:
        Thread(target=server.serve_forever).start()
        rows = [*(load_digits().data[1500:1540] / 16).tolist(), [float("nan")] * 64]
        address = f"http://127.0.0.1:{server.server_port}"
        posted = json.dumps(rows).encode()
        with urlopen(address, data=posted) as response:
            answers = json.load(response)
        server.shutdown()
    decided = next(one for one in answers if one["decision"] != "refer")
    referred = next(one for one in answers if one["decision"] == "refer")
    for answer in (decided, referred, answers[-1]):
        print(answer)


if __name__ == "__main__":
    main()

"""Feeds a PyTorch model with samples from the ring, in blocks. Ring and model share the process and the GPU."""

import feedrate
import numpy as np

try:
    import torch
except ModuleNotFoundError:
    raise SystemExit(print("needs PyTorch: pip install torch"))

device = "cuda" if torch.cuda.is_available() else "cpu"
with feedrate.Ring("echo", message_bytes=64, capacity=2048) as ring:
    with ring.parked():  # creating a model loads kernels and frees memory, which waits for the entire GPU
        model = torch.nn.Linear(16, 4).to(device)
        model(torch.zeros(1, 16, device=device))
    total = 0
    for _ in range(20):
        with ring.reserve(512) as messages:
            messages.payload.view(np.float32)[:] = np.random.random((len(messages), 16))
        with ring.poll(512) as answers:
            samples = torch.from_numpy(np.array(answers.payload.view(np.float32)))
        total += len(model(samples.to(device)))
    print(total, "samples processed on", device)

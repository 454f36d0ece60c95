"""Runs a sweep as in a notebook and plots throughput by window."""

import feedrate
import matplotlib.pyplot as plt

spec = {
    "name": "windows",
    "run": {"seconds": 0.05, "warmup": 0.02, "repetitions": 3},
    "parts": [{"name": "all", "axes": {"queue": ["gpu_ring", "host_polled"], "payload": 64, "window": "pow2:0..9:3"}}],
}
frame = feedrate.sweep(spec, keep_disturbed=True)
good = frame[frame["status"] == "ok"]
for variant, points in good.groupby("variant"):
    rates = points.groupby("window")["messages_per_second"].median()
    plt.loglog(rates.index, rates.values, marker="o", label=variant)
plt.xlabel("messages in flight")
plt.ylabel("messages per second")
plt.legend()
plt.savefig("windows.png")
print("wrote windows.png from the rows in", frame.attrs["folder"])

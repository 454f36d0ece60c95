"""Measures the cost to a Redis server of moving elements from one list to another. Moves
(variants/feeding/queues/redis/moves.hpp) and its minimum size are based on this trial.

    python tests/trials/list_moves.py

Starts a `redis-server` and repeats three variants alternately, in four rounds: LPUSH of the elements, followed by RPOP
of the elements (`pop`), by RPOP and RPUSH in a script (`script`), or by one LMOVE per element in a transaction
(`moves`). Prints the median of the server's CPU time (user and system) per repetition, in microseconds.
"""

import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SCRIPT = b"""
local elements = redis.call('RPOP', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[2], unpack(elements))
return elements
"""
SHAPES = ((16, 6000), (64, 4200), (64, 1000), (64, 500), (1024, 100))  # number of elements, bytes per element
BYTES, ROUNDS = 20_000_000, 4  # bytes moved per round, rounds


class Server:
    def __init__(self, folder: str):
        path = Path(folder) / "redis.sock"
        words = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        self.connection = socket.socket(socket.AF_UNIX)
        for _ in range(200):
            if not self.connection.connect_ex(str(path)):
                break
            time.sleep(0.05)
        self.replies = self.connection.makefile("rb", buffering=1 << 20)

    def read(self):
        line = self.replies.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind in b"+:":
            return rest
        length = int(rest)
        if length < 0:
            return None
        return self.replies.read(length + 2)[:-2] if kind == b"$" else [self.read() for _ in range(length)]

    def run(self, commands: bytes, replies: int):
        self.connection.sendall(commands)
        return [self.read() for _ in range(replies)][-1]

    def seconds(self) -> float:
        info = dict(line.split(":") for line in self.run(command("INFO", "cpu"), 1).decode().split("\r\n") if ":" in line)
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def command(*words) -> bytes:
    raw = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in raw)


def turns(server: Server, elements: int, size: int) -> dict[str, tuple[bytes, int]]:
    """The commands of one repetition of each variant, and the number of their replies."""
    push = command("LPUSH", "tasks", *[b"x" * size] * elements)
    script = server.run(command("SCRIPT", "LOAD", SCRIPT), 1)
    moves = command("MULTI") + command("LMOVE", "tasks", "held", "RIGHT", "RIGHT") * elements + command("EXEC")
    drop = command("DEL", "held")
    return {
        "pop": (push + command("RPOP", "tasks", elements), 2),
        "script": (push + command("EVALSHA", script, 2, "tasks", "held", elements) + drop, 3),
        "moves": (push + moves + drop, elements + 4),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            for elements, size in SHAPES:
                took: dict[str, list[float]] = {}
                times = max(100, BYTES // (elements * size))
                for _ in range(ROUNDS):
                    for kind, turn in turns(server, elements, size).items():
                        begin = server.seconds()
                        for _ in range(times):
                            server.run(*turn)
                        took.setdefault(kind, []).append((server.seconds() - begin) / times * 1e6)
                times_text = ", ".join(f"{kind} {statistics.median(values):.0f} µs" for kind, values in took.items())
                print(f"{elements} elements of {size} B: {times_text}", flush=True)
        finally:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()

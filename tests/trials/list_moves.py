"""What it costs a Redis server to move elements from one list to another: the probe behind Moves
(variants/feeding/queues/redis/moves.hpp) and its least size.

    python tests/trials/list_moves.py

Starts a `redis-server` and repeats, by turns and in four rounds: LPUSH of the elements, then RPOP of them (`pop`), RPOP
and RPUSH by a script (`script`), or as many LMOVE in a transaction (`moves`). Prints the median of the server's own time
(user and system) for each turn, in microseconds.
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
SHAPES = ((16, 6000), (64, 4200), (64, 1000), (64, 500), (1024, 100))  # elements, bytes of each
BYTES, ROUNDS = 20_000_000, 4  # that are moved in a round


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
    """The commands of one turn of each kind, and how many replies they have."""
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
                told = ", ".join(f"{kind} {statistics.median(values):.0f} µs" for kind, values in took.items())
                print(f"{elements} elements of {size} B: {told}", flush=True)
        finally:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()

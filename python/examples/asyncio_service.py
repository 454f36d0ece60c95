"""An asyncio service: clients connect, and each line they send passes through the ring and is returned."""

import asyncio

import feedrate


async def main() -> None:
    with feedrate.Ring("echo", message_bytes=256) as ring:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(await ring.acall(line))
            writer.close()

        async def client(name: int) -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"client {name}\n".encode())
            answer = await reader.readline()
            writer.close()
            return answer.decode().strip()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        answers = await asyncio.gather(*(client(n) for n in range(100)))
        print(len(answers), "answers; the last one is", answers[-1])
        server.close()


asyncio.run(main())

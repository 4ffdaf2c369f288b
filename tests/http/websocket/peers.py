"""The other end of peers_test: a client or an echo server of Python's websockets.

    peers.py client URL [COMPRESSION]   sends messages of many sizes, and expects them back
    peers.py server                     prints its port, and echoes until its input ends
"""
import asyncio
import os
import sys

import websockets

SIZES = [0, 1, 125, 126, 127, 65535, 65536, 300000]


async def client(url, compression):
    async with websockets.connect(
        url, subprotocols=["v9.chat", "v1.chat"], compression=compression, max_size=None
    ) as socket:
        assert socket.subprotocol == "v1.chat", socket.subprotocol
        has_extension = bool(socket.extensions)
        assert has_extension == (compression is not None), socket.extensions
        for size in SIZES:
            for message in ("\u00fc" * (size // 2) + "x" * (size % 2), os.urandom(size)):
                await socket.send(message)
                assert await socket.recv() == message, size
        await socket.send(["frag", "ment", "", "ed"])
        assert await socket.recv() == "fragmented"
        for _ in range(10):
            await asyncio.wait_for(await socket.ping(), 60)
        messages = [os.urandom(100) for _ in range(500)]
        for message in messages:
            await socket.send(message)
        for message in messages:
            assert await socket.recv() == message
        await socket.close(4001, "done")
        assert socket.close_code == 4001, socket.close_code
    print("ok")


async def echo(socket, path=None):
    async for message in socket:
        await socket.send(message)


async def server():
    async with websockets.serve(echo, "127.0.0.1", 0, subprotocols=["v1.chat"]) as listening:
        print(listening.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if sys.argv[1] == "client":
    asyncio.run(client(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
else:
    asyncio.run(server())

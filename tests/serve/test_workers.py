"""The socket that workers share."""

from __future__ import annotations

import asyncio
import socket

from tercet.serve.workers import bind


def test_answers_are_sent_at_once() -> None:
    async def ask() -> bool:
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        listener = bind("127.0.0.1", 0)
        async with await asyncio.start_server(
            lambda _, writer: accepted.set_result(writer), sock=listener
        ):
            _, client = await asyncio.open_connection(*listener.getsockname())
            server = await accepted
            connection = server.get_extra_info("socket")
            immediate = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            server.close()
            client.close()
            return bool(immediate)

    assert asyncio.run(ask())

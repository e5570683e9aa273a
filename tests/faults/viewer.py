"""Who looks at a server of the fault matrix as a browser does that has the live page open."""

import asyncio


class Viewer:
    """Reads the stream of a server for as long as it comes. `url`: as musterd tells it."""

    def __init__(self, url):
        self.port = int(url.rstrip("/").rsplit(":", 1)[1])
        self.events = 0
        self.task = asyncio.create_task(self.look())

    async def look(self):
        """Where the server has no place for a viewer, or ends, the next try comes soon."""
        while True:
            try:
                await self.read()
            except (OSError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.2)

    async def read(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        try:
            writer.write(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while line := await reader.readline():
                self.events += line.startswith(b"event: ")
        finally:
            writer.close()

    async def end(self):
        """returns  how many events came"""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        return self.events

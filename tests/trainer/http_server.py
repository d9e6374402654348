"""A local HTTP server that can break off, lose its network and serve ranges, for the tests of downloads."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Server:
    files: dict[str, bytes]
    """By path."""
    break_after: list[int] = field(default_factory=list)
    """How many bytes of each next answer go out before the connection breaks; answers after those are whole."""
    ranges: bool = True
    requests: list[str] = field(default_factory=list)
    """The range asked for in each request, or nothing."""
    url: str = ""


@contextmanager
def serve(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            server.requests.append(asked)
            if self.path not in server.files:
                self.send_error(404)
                return
            body = server.files[self.path]
            start = int(re.findall(r"\d+", asked)[0]) if asked and server.ranges else 0
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if server.ranges:
                self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            stop = start + server.break_after.pop(0) if server.break_after else len(body)
            self.wfile.write(body[start:stop])

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        server.url = f"http://127.0.0.1:{running.server_address[1]}"
        try:
            yield server
        finally:
            running.shutdown()
            thread.join()

"""A local HTTP server for the tests of downloads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Server:
    files: dict[str, bytes]
    """By path."""
    requests: list[str] = field(default_factory=list)
    """The path of each request."""
    url: str = ""


@contextmanager
def serve(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(self.path)
            if self.path not in server.files:
                self.send_error(404)
                return
            body = server.files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        server.url = f"http://127.0.0.1:{running.server_address[1]}/"
        try:
            yield server
        finally:
            running.shutdown()
            thread.join()

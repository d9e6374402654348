"""Drive Chromium by its DevTools protocol over a pipe: it needs nothing but the browser itself."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
SECONDS = 120
"""A page that has not loaded by then has failed; a busy machine takes tens of seconds to start the browser."""
FIRST_FREE = 20
"""File descriptors below are free for those that the browser expects, 3 and 4."""


def find_chromium() -> str | None:
    """Return the path of the browser, or None."""
    paths = [shutil.which(name) for name in NAMES]
    return next(filter(None, paths), None)


class Page:
    """A page in the browser, what it asked for, and what it complained about."""

    def __init__(self, send: BinaryIO, receive: BinaryIO) -> None:
        self._send, self._receive = send, receive
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, *, width: int, scheme: str) -> None:
        """Load a file in a window of this width, with a preferred colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.requests.clear()
        self.complaints.clear()
        before, latest = self._loaded, monotonic() + SECONDS
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._loaded == before:
            assert monotonic() < latest, f"{path} has not loaded after {SECONDS} seconds"
            self._next()

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression, or of the promise that it gives."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screenshot(self) -> bytes:
        """Return a picture of the whole page, as PNG."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(found["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def call(self, method: str, **settings: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": settings}
        if self._session is not None:
            message["sessionId"] = self._session
        self._send.write(json.dumps(message).encode() + b"\0")
        self._send.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        read = bytearray()
        while (byte := self._receive.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            read += byte

        message: dict[str, Any] = json.loads(read)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in (
            "error",
            "warning",
        ):
            self.complaints.append(params["entry"]["text"])


@contextmanager
def opened_page(browser: str) -> Iterator[Page]:
    """Start the browser with a fresh profile, and end it."""
    pipes = [os.pipe(), os.pipe()]
    (to_read, to_write), (from_read, from_write) = [
        [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for end in pipe]
        for pipe in pipes
    ]
    for pipe in pipes:
        for end in pipe:
            os.close(end)

    def give_pipes() -> None:
        os.dup2(to_read, 3)
        os.dup2(from_write, 4)

    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [browser, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=give_pipes,
            pass_fds=(3, 4),
        )
        os.close(to_read)
        os.close(from_write)
        with os.fdopen(to_write, "wb") as send, os.fdopen(from_read, "rb") as receive:
            try:
                yield Page(send, receive)
            finally:
                process.terminate()
                process.wait(timeout=30)

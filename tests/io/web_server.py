"""A web server on the loopback address: ``python -m tests.io.web_server FOLDER`` prints its port.

The first part of an address says how it behaves: /good serves byte ranges, /whole none, /broken
breaks off in the middle of a range, /moody does so while there is a file "bad mood", /unversioned
names no version of a file, /silent never answers, /403 answers 403. /sent tells how many bytes of
files it has sent, and /asked how often it was asked for anything else. It runs in a process of its
own, because GDAL keeps all Python threads waiting while it waits for an answer.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlparse


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Give the address of a server of a folder."""
    command = [sys.executable, "-m", "tests.io.web_server", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


class Handler(SimpleHTTPRequestHandler):
    """Answers as the first part of the address says."""

    folder: ClassVar[Path]
    sent: ClassVar[int] = 0
    asked: ClassVar[int] = 0

    def do_GET(self) -> None:
        _, how, name = (unquote(urlparse(self.path).path) + "/").split("/", 2)
        path = self.folder / name.rstrip("/")
        Handler.asked += how not in {"sent", "asked"}
        if how in {"sent", "asked"}:
            self._answer(200, str(getattr(Handler, how)).encode())
        elif how == "silent":
            time.sleep(600)
        elif how.isdigit():
            self._answer(int(how), b"")
        elif path.is_dir() and urlparse(self.path).query:
            self._answer(200, self._listed().encode())
        elif path.is_dir() and how == "good":
            names = "".join(f'<a href="{entry.name}">-</a>' for entry in path.iterdir())
            self._answer(200, names.encode())
        elif path.is_file():
            self._send_file(path, how)
        else:
            self._answer(404, b"")

    def _listed(self) -> str:
        """Return the files whose names begin as S3 is asked."""
        (prefix,) = parse_qs(urlparse(self.path).query).get("prefix", [""])
        files = [path for path in self.folder.iterdir() if path.name.startswith(prefix)]
        listed = "".join(
            f"<Contents><Key>{path.name}</Key><Size>{path.stat().st_size}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for path in files
        )
        return f"<ListBucketResult><KeyCount>{len(files)}</KeyCount>{listed}</ListBucketResult>"

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send_file(self, path: Path, how: str) -> None:
        whole = path.read_bytes()
        headers = {"Accept-Ranges": "none" if how == "whole" else "bytes"}
        if how != "unversioned":
            headers["ETag"] = f'"{path.stat().st_mtime_ns}"'
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        broken = how == "broken" or (how == "moody" and (self.folder / "bad mood").exists())
        if how == "whole" or not first:
            cut = len(whole) // 2 if broken and len(whole) > 10_000 else len(whole)
            self._answer(200, whole, headers=headers, cut=cut)
            Handler.sent += cut if self.command == "GET" else 0
            return
        end = min(int(last or len(whole)) + 1, len(whole))
        part = whole[int(first) : end]
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(whole)}"
        cut = len(part) // 2 if broken and int(first) > 10_000 else len(part)
        self._answer(206, part, headers=headers, cut=cut)
        Handler.sent += cut

    def _answer(
        self, status: int, body: bytes, *, headers: dict[str, str] | None = None, cut: int = -1
    ) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[:cut] if cut >= 0 else body)
        self.close_connection = True

    def log_message(self, *_args: object) -> None:
        pass


if __name__ == "__main__":
    Handler.folder = Path(sys.argv[1])
    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{served.server_port}\n")
    sys.stdout.flush()
    served.serve_forever()

"""The site, built, and as a host would serve it: `python benchmarks/site/serve.py FOLDER`."""

import functools
import gzip
import http.server
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (".css", ".html", ".ipynb", ".js", ".json", ".map", ".md", ".svg", ".txt", ".webmanifest", ".xml")
TYPES = {".ipynb": "application/json", ".md": "text/markdown", ".webmanifest": "application/manifest+json"}
HEADERS = {  # those that SECURITY.md asks a host for
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@functools.cache
def _body(file: Path, saved: int, compressed: bool) -> bytes:
    content = file.read_bytes()
    return gzip.compress(content, mtime=0) if compressed else content


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, port: int, sent: list[tuple[str, int]]) -> None:
        self.sent = sent
        super().__init__(("127.0.0.1", port), functools.partial(Site, directory=str(folder)))


class Site(http.server.SimpleHTTPRequestHandler):
    """Answers as the usual static hosts do, the site's own page for addresses that lead nowhere included."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    server: "Server"

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        file, status = Path(self.translate_path(self.path)), HTTPStatus.OK
        path, _, query = self.path.partition("?")
        if file.is_dir() and not path.endswith("/"):
            self.send_response(HTTPStatus.MOVED_PERMANENTLY)
            self.send_header("Location", f"{path}/" + (f"?{query}" if query else ""))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if file.is_dir():
            file /= "index.html"
        if not file.is_file():
            file, status = Path(self.directory) / "404.html", HTTPStatus.NOT_FOUND
        compressed = file.suffix in TEXT and "gzip" in self.headers.get("Accept-Encoding", "")
        body = _body(file, file.stat().st_mtime_ns, compressed)
        kind = TYPES.get(file.suffix) or self.guess_type(file)
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if file.suffix in TEXT else kind)
        self.send_header("Content-Length", str(len(body)))
        # The theme's own files have a hash in their names.
        lasting = ".min." in file.name or file.suffix == ".woff2"
        self.send_header("Cache-Control", "max-age=31536000, immutable" if lasting else "max-age=600")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Vary", "Accept-Encoding")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)
            self.server.sent.append((path, len(body)))

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def built(site: Path | None) -> Iterator[Path]:
    """A site that is built already, or else the book's, which is there while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        if site is None:
            site = Path(folder) / "site"
            subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", site],
                cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            )  # fmt: skip
        yield site.resolve()


@contextmanager
def served(folder: Path, port: int = 0, sent: list[tuple[str, int]] | None = None) -> Iterator[str]:
    """Serve a folder, compressed, while the block runs; gives its address, without a slash at the end.

    What is sent is noted in `sent`: paths, and how many bytes each took.
    """
    with Server(folder, port, [] if sent is None else sent) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


if __name__ == "__main__":
    with served(Path(sys.argv[1]), 8000) as address:
        input(f"{address} (Enter ends it)\n")

"""Processes for jobs: the fork server's client side, time limits, and no process left behind."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from executed.book import read_settings
from executed.staged import saved_since
from executed.worker import ENVIRONMENT, end_group

MOST_OUTPUT = 2**20
"""Bytes an example may print."""
TICK = 0.05
MARK = "EXECUTED_POOL"
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
"""macOS has fork, but its frameworks may not survive one; there and on Windows each example starts afresh."""


@dataclass(frozen=True)
class Ended:
    """How a job's process ended: its exit status (negative: the signal) and why we ended it, if we did."""

    status: int
    reason: str = ""


def _environment() -> dict[str, str]:
    package = str(Path(__file__).parent.parent)
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}


def run_apart(folder: Path, timeout: float) -> Ended:
    """Run one job in a fresh interpreter: where there is no fork, and for executors on other machines."""
    root = json.loads((folder / "job.json").read_text("utf-8"))["root"]
    process = subprocess.Popen(
        [sys.executable, "-m", "executed.worker", "run", str(folder)],
        cwd=root,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    watch = _Watch(folder, timeout, process.pid)
    while process.poll() is None:
        time.sleep(TICK)
        watch.look()
    end_group(process.pid)
    return Ended(process.returncode, watch.reason)


class _Watch:
    """Ends a job that takes too long or prints too much, with all the processes it started."""

    def __init__(self, folder: Path, timeout: float, pid: int) -> None:
        self.output = folder / "output"
        self.deadline = time.monotonic() + timeout
        self.pid = pid
        self.reason = ""

    def look(self) -> None:
        if not self.reason and time.monotonic() > self.deadline:
            self.reason = "timeout"
            if hasattr(signal, "SIGUSR1"):
                end_group(self.pid, signal.SIGUSR1)  # the worker writes down where it stands
                time.sleep(0.2)
            end_group(self.pid)
        elif not self.reason and self._printed() > MOST_OUTPUT:
            self.reason = "output"
            end_group(self.pid)

    def _printed(self) -> int:
        try:
            return self.output.stat().st_size
        except OSError:  # an example may delete what it likes
            return 0


def _end_marked(mark: str) -> None:
    """End what a server left behind, where the system shows the environment that a process was started with."""
    entry = f"{MARK}={mark}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if entry in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)


class _Server:
    """One fork server and the jobs it was given."""

    def __init__(self, root: Path, preload: Iterable[str]) -> None:
        self._mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "executed.worker", "serve", *preload],
            cwd=root,
            env={**_environment(), MARK: self._mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self._messages: dict[str, queue.SimpleQueue[tuple[str, int]]] = {}
        self._running: dict[str, int] = {}
        self._ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def give(self, folder: Path) -> queue.SimpleQueue[tuple[str, int]]:
        """Have a job run; what becomes of it comes through the queue. Raises OSError if the server has ended."""
        messages: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        with self._lock:
            if self._ended:
                raise BrokenPipeError
            self._messages[str(folder)] = messages
            assert self.process.stdin is not None
            self.process.stdin.write(f"{folder}\n".encode())
            self.process.stdin.flush()
        return messages

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, number, folder = line.decode().rstrip("\n").split(" ", 2)
            with self._lock:
                if word == "started":
                    self._running[folder] = int(number)
                else:
                    self._running.pop(folder, None)
                messages = self._messages.get(folder) if word == "started" else self._messages.pop(folder, None)
            if messages:
                messages.put((word, int(number)))
        self.process.wait()
        _end_marked(self._mark)
        with self._lock:
            self._ended = True
        for messages in self._messages.values():
            messages.put(("lost", -1))

    def end(self) -> None:
        """End the server and every job at once."""
        with self._lock:
            running = list(self._running.values())
        for pid in running:
            end_group(pid)
        self.process.kill()
        self.process.wait()
        _end_marked(self._mark)


class Pool:
    """Runs jobs in children of one fork server, started at the first job and again if it dies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.preload: dict[str, None] = {}
        self._lock = threading.Lock()
        self._again = threading.Lock()
        self._server: _Server | None = None
        self._closed = False

    def expect(self, modules: Iterable[str]) -> None:
        """Have these imported before the next job starts, with a new server if one runs without them."""
        with self._lock:
            if self._server and not self.preload.keys() >= set(modules):
                self._server.end()
            self.preload |= dict.fromkeys(modules)

    def start_early(self) -> None:
        """Where snippets were saved since the last build, let the server import what they do: something will run."""
        text = "\n".join(file.read_text("utf-8", "replace") for file in saved_since(self.root))
        imported = set(re.findall(r"^[ \t]*(?:import|from) (\w+)", text, re.M))
        modules = [name for name in read_settings(self.root).preload if name.partition(".")[0] in imported]
        self.expect(modules)
        with self._lock:
            if FORKS and modules and not self._closed:
                self._start()

    def run(self, folder: Path, timeout: float) -> Ended:
        """Run the job in `folder` and wait for its end. Safe to call from several threads."""
        if not FORKS:
            return run_apart(folder, timeout)
        ended = self._run(folder, timeout)
        if ended.reason == "server" and not self._closed:
            with self._again:  # one at a time: if one of them ends the server, the others do not go with it twice
                for left in folder.glob("*"):
                    if left.name != "job.json":  # what the first try printed must not count
                        left.unlink(missing_ok=True)
                ended = self._run(folder, timeout)
        return ended

    def _run(self, folder: Path, timeout: float) -> Ended:
        with self._lock:
            if self._closed:
                return Ended(-1, "stopped")
            try:
                messages = self._start().give(folder)
            except OSError:
                return Ended(-1, "server")
        word, number = messages.get()
        watch = _Watch(folder, timeout, number)
        while word == "started":
            try:
                word, number = messages.get(timeout=TICK)
            except queue.Empty:
                watch.look()
        if word == "lost":
            if watch.pid > 0:
                end_group(watch.pid)
            return Ended(-1, "stopped" if self._closed else "server")
        return Ended(number, watch.reason)

    def _start(self) -> _Server:
        if self._server is None or self._server.process.poll() is not None:
            self._server = _Server(self.root, self.preload)
        return self._server

    def close(self) -> None:
        """End the server and every job at once."""
        with self._lock:
            self._closed = True
        if self._server:
            self._server.end()

"""One example in one process of its own, forked from a server that has already imported what most examples import.

`python -m executed.worker serve MODULE...` is the fork server: it reads job folders from its standard input, one a
line, and answers with `started PID FOLDER` and `ended STATUS FOLDER`. `python -m executed.worker run FOLDER` runs one
job without forking, where there is no fork and for executors on other machines. The job folder holds `job.json` on the
way in; on the way out `output` (what was printed), `outcome.json`, and `returned.pickle` for examples that need it.
"""

import contextlib
import ctypes
import faulthandler
import gc
import hashlib
import importlib
import importlib.machinery
import linecache
import logging
import os
import pickle
import selectors
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Container, Iterator
from errno import EDQUOT, ENOSPC, ESTALE
from json import dumps, loads  # by name, as an example may put its own in their place
from pathlib import Path
from typing import Any, NoReturn

GIB = 2**30
FULL = (ENOSPC, EDQUOT)
UNWRITTEN = 70
"""The exit status of a process that could not write down what came of its job."""
# Set before torch is imported: one thread an example; and whatever the shell says, the same hash order, figures, time
# zone and warnings in every process.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "MPLBACKEND": "agg",
    "MATPLOTLIBRC": str(Path(__file__).with_name("book.mplstyle")),
    "COLUMNS": "80",
    "NO_COLOR": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "PYTHONOPTIMIZE": "",
    "PYTHONWARNINGS": "",
}


def run(folder: Path) -> None:
    """Run the job in `folder` in this process and leave its outcome there."""
    job = loads((folder / "job.json").read_text("utf-8"))
    _redirect(folder / "output")
    _dump_where_it_stands(folder / "trace")
    _limit_memory(int(job["memory"] * GIB))
    opened: dict[str, list[int]] = {}
    sys.addaudithook(_watch_files(Path(job["root"]), {*job["followed"]}, opened))
    streams = sys.stdout, sys.stderr
    # Only after the hook: what an example reads while its module is imported counts too.
    outcome = _outcome(job, folder)
    for stream in (*streams, sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if "error" not in outcome:
                message = f"what it printed could not be written: {_described(error)}"
                outcome = _failure(job, message, outcome["started"], error)
        except (ValueError, AttributeError):  # the example closed it, or put something else in its place
            pass
    ctypes.CDLL(None).fflush(None) if os.name == "posix" else None
    outcome["files"] = opened
    partial = folder / "outcome.partial"
    partial.write_text(dumps(outcome), "utf-8")
    partial.rename(folder / "outcome.json")


def _outcome(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    from executed import capture

    started = time.time()
    try:
        _compile_anew(job["root"])
        sys.path.insert(0, job["root"])
        if "torch" in sys.modules or job["threads"] > 1:
            import torch

            torch.set_num_threads(job["threads"])
        function = getattr(importlib.import_module(job["module"]), job["function"])
        needs = {name: pickle.loads(_kept(*need)) for name, need in job["needs"].items()}
        begun = time.perf_counter()
        try:
            returned = _call(function, needs)
            seconds = time.perf_counter() - begun
            if job["raises"]:
                return _failure(job, f"was to raise {job['raises']} and did not", started)
        except Exception as error:
            if job["raises"] not in [kind.__name__ for kind in type(error).__mro__]:
                raise
            seconds = time.perf_counter() - begun
            returned = None
            sys.stdout.write("".join(traceback.format_exception_only(error)))
        values = capture.quotable(returned if returned is not None else {})
        if not isinstance(values, dict) or "$unquotable" in values:
            values = {"value": values}
        _pickle(returned, folder / "returned.pickle")
        return {
            "values": values,
            "figures": capture.open_figures(),
            "seconds": seconds,
            "started": started,
            "memory": _peak_memory(),
        }
    except BaseException as error:  # SystemExit and KeyboardInterrupt end an example as any error does
        return _failure(job, _described(error), started, error)


def _kept(path: str, checksum: str) -> bytes:
    """The pickle of a need, which another run may have deleted or made anew by now."""
    data = Path(path).read_bytes() if os.path.exists(path) else b""
    if hashlib.sha256(data).hexdigest() != checksum:
        raise OSError(ESTALE, "it is not what it was when this build began; build again", path)
    return data


def _call(function: Callable[..., Any], needs: dict[str, Any]) -> Any:
    """What the example returns. A process that it forked must not come back here as well."""
    own = os.getpid()
    try:
        return function(**needs)
    finally:
        if os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)


def _compile_anew(root: str) -> None:
    """Import the repository's code from its text: Python takes a .pyc for current if size and second agree."""

    class FromText(importlib.machinery.SourceFileLoader):
        def get_code(self, fullname: str) -> Any:
            return self.source_to_code(self.get_data(self.path), self.path)

    def finder(path: str) -> importlib.machinery.FileFinder:
        if not Path(path).is_relative_to(root) or Path(path).is_relative_to(sys.prefix):
            raise ImportError(path)
        return importlib.machinery.FileFinder(path, (FromText, [".py"]))

    sys.path_hooks.insert(0, finder)
    for path in [known for known in sys.path_importer_cache if Path(known).is_relative_to(root)]:
        del sys.path_importer_cache[path]


def _pickle(returned: object, target: Path) -> None:
    """Keep the returned object for the examples that need it. One that cannot be kept matters only to those."""
    try:
        data = pickle.dumps(returned)
    except Exception as error:
        target.with_suffix(".unpickled").write_text(f"{type(error).__name__}: {error}", "utf-8")
    else:
        target.write_bytes(data)


def _described(error: BaseException) -> str:
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "not enough memory" in text:
        return f"ran out of its memory limit (memory= in @example raises it): {text.splitlines()[0]}"
    if isinstance(error, OSError) and error.errno in FULL:
        return f"there is no room left on the disk; make some and build again: {text}"
    if isinstance(error, SystemExit):
        return f"called sys.exit({error.code!r})"
    return text


def _failure(job: dict[str, Any], message: str, started: float, error: BaseException | None = None) -> dict[str, Any]:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_engine(f.filename)] if error else []
    if isinstance(error, SyntaxError) and error.filename:
        frames.append(traceback.FrameSummary(error.filename, error.lineno or 1, "<module>"))
    own = [frame for frame in frames if _shown(frame.filename, job["root"]).startswith("snippets/")]
    lines = []
    for frame in frames:
        lines.append(f"{_shown(frame.filename, job['root'])}:{frame.lineno} in {frame.name}")
        lines.append(f"    {linecache.getline(frame.filename, frame.lineno or 0).strip()}")
    place = {"path": _shown(own[-1].filename, job["root"]), "line": own[-1].lineno} if own else {}
    passing = isinstance(error, OSError) and error.errno in (*FULL, ESTALE)
    return {"error": message, "trace": lines, "started": started, "passing": passing, **place}


def _is_engine(filename: str) -> bool:
    return Path(filename).parent == Path(__file__).parent or filename.startswith("<frozen importlib")


def _shown(filename: str, root: str) -> str:
    """A path as a reader can use it: inside the repository or inside an installed package."""
    for base in sorted({root, *sys.path}, key=len, reverse=True):
        if base and filename.startswith(base.rstrip(os.sep) + os.sep):
            return Path(filename).relative_to(base).as_posix()
    return filename


def _redirect(output: Path) -> None:
    """Send everything this process and its children print to one file, in order, C and C++ output included."""
    target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, number in ((nothing, 0), (target, 1), (target, 2)):
        os.dup2(stream, number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    if sys.platform == "linux":  # C's own buffer, line by line too, so that it does not fall behind Python's
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)
    # A line number in a warning would change with every comment above it.
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    warnings.filterwarnings("ignore", message=".*non-interactive, and thus cannot be shown")
    for name in ("matplotlib", "matplotlib.font_manager"):  # they tell of this machine's caches and fonts
        logging.getLogger(name).setLevel(logging.ERROR)


def _dump_where_it_stands(target: Path) -> None:
    """Write the Python line to `target` when the process crashes, calls os._exit, or is about to be ended."""
    file = target.open("w")
    faulthandler.enable(file)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file)
    leave = os._exit

    def leave_a_trace(status: int) -> None:
        faulthandler.dump_traceback(file, all_threads=False)
        leave(status)

    os._exit = leave_a_trace  # type: ignore[assignment]


def _limit_memory(limit: int) -> None:
    """Make an allocation beyond `limit` bytes fail where it is made, so that the error names the line."""
    if sys.platform == "linux":
        import resource

        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    else:
        threading.Thread(target=_watch_memory, args=(limit,), daemon=True).start()


def _watch_memory(limit: int) -> None:
    while _peak_memory() < limit:
        time.sleep(0.1)
    os.write(2, b"the example used more memory than its limit\n")
    os.kill(os.getpid(), signal.SIGABRT)


def _peak_memory() -> int:
    """The most memory this process has held, in bytes, by the operating system's count; 0 where it keeps none."""
    if os.name != "posix":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def state(path: str) -> list[int]:
    """What tells that a file was written; nothing where there is none, and for folders."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [] if os.path.isdir(path) else [found.st_mtime_ns, found.st_size, found.st_ino]


def _watch_files(
    root: Path, followed: set[str], opened: dict[str, list[int]]
) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that notes which repository files an example reads, and lets it write to none of them.

    Not counted: imports of code that the fingerprint follows by itself, hidden folders, and installed packages.
    """
    prefixes = tuple(os.path.realpath(p) + os.sep for p in (sys.prefix, sys.base_prefix))
    top = os.path.realpath(root) + os.sep

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir", "os.scandir") or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        reader = sys._getframe(1).f_code.co_filename
        importing = reader.startswith("<frozen importlib")
        if event == "os.listdir" and importing:
            return  # an import looks into every folder on its way
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if not path.startswith(top) or path.startswith(prefixes):
            return
        inside = path[len(top) :].replace(os.sep, "/")
        if inside.startswith((".", "executed/")) or "__pycache__" in inside or ".egg-info/" in inside:
            return
        if inside.endswith(".py") and (inside in followed if importing else reader.endswith("tokenize.py")):
            return  # `tokenize` reads the lines that a traceback shows
        flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(f"an example may not write into the repository ({inside}); use a temporary folder")
        if inside not in opened:
            opened[inside] = state(path)

    return note


def serve(preload: list[str]) -> None:
    """Fork one child a job until standard input closes, then end whatever still runs."""
    _adopt()
    gc.disable()  # what is imported stays: to look for garbage among it takes a seventh of the time
    for name in ("executed.capture", *preload):
        with contextlib.suppress(ImportError):  # the example that needs it says so better
            importlib.import_module(name)
    gc.freeze()
    gc.enable()
    running: dict[int, str] = {}
    wake, wakeup = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    waiting = b""
    while True:
        for key, _ in selector.select():
            if key.fd == wake:
                os.read(wake, 4096)
                continue
            read = os.read(0, 65536)
            if not read:
                for pid in running:
                    end_group(pid)
                _end_children()
                return
            *folders, waiting = (waiting + read).split(b"\n")
            for folder in folders:
                pid = _fork(folder.decode(), (wake, wakeup))
                running[pid] = folder.decode()
                _tell(f"started {pid} {running[pid]}")
        while ended := _reap():
            pid, status = ended
            if pid in running:
                end_group(pid)  # child processes that the example left behind
                _tell(f"ended {os.waitstatus_to_exitcode(status)} {running.pop(pid)}")
                _end_children(spare=running)


def _tell(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the build was killed; the end of standard input says so as well
        os.write(1, f"{line}\n".encode())


def _adopt() -> None:
    """On Linux, become the parent of every process below this one that loses its own: so none can get away."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def _reap() -> tuple[int, int] | None:
    """A child process that has ended, and how; None where none has."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _end_children(spare: Container[int] = ()) -> None:
    """End what examples that have ended left behind, whatever session it put itself into."""
    end = time.monotonic() + 1
    while (children := [pid for pid in _children() if pid not in spare]) and time.monotonic() < end:
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _children() -> Iterator[int]:
    """The processes whose parent this one is, where the system has /proc."""
    for name in filter(str.isdigit, os.listdir("/proc") if sys.platform == "linux" else ()):
        with contextlib.suppress(OSError):
            if int(Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                yield int(name)


def end_group(pid: int, number: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """Signal a job's process and every process it started. One that has already gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if hasattr(os, "killpg") else os.kill)(pid, number)


def _fork(folder: str, server_only: tuple[int, ...]) -> int:
    server = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in server_only:
            os.close(number)
        _run_and_leave(Path(folder), server)
    finally:
        os._exit(UNWRITTEN)


def _run_and_leave(folder: Path, parent: int) -> NoReturn:
    """Run a job and end at once: threads that go on and exit handlers that hang are not waited for."""
    leave = os._exit  # before an example's own call leaves a trace
    try:
        _adopt()
        if sys.platform == "linux":  # the process goes when its parent goes, even if that is killed
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() == parent:
            run(folder)
            _end_children()
            leave(0)
    except OSError:
        pass  # the status says it
    except BaseException:
        traceback.print_exc()
    finally:
        leave(UNWRITTEN)


def main(arguments: list[str]) -> None:
    if arguments[0] == "serve":
        serve(arguments[1:])
    else:
        _run_and_leave(Path(arguments[1]), os.getppid())


if __name__ == "__main__":
    main(sys.argv[1:])

"""executed/runner.py, pool.py and worker.py: what runs, when, how it ends, and what is left behind."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import executed.pool
from executed.book import Book
from executed.pool import Pool, run_apart
from executed.runner import Progress, run
from executed.store import Failure, Outcomes, Store

HEAD = "from executed import example\n"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def ran(root: Path, names: Iterable[str] | None = None, **options: object) -> Outcomes:
    book = Book.read(root)
    return run(book, Store(root), names or book.examples, progress=Progress(io.StringIO()), **options)  # type: ignore[arg-type]


def fail(root: Path, name: str) -> Failure:
    return ran(root).failures[name]


def snippet(body: str, options: str = "") -> str:
    decorator = f"@example({options})" if options else "@example"
    return f"{HEAD}\n\n{decorator}\ndef one():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def alive(marker: str) -> bool:
    return subprocess.run(["pgrep", "-f", marker], capture_output=True).returncode == 0


def eventually(true: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


def test_a_second_run_runs_nothing(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("print('hello')\nreturn {'x': 1}")})
    first, second = ran(root), ran(root)
    assert first.ran == ["a.one"]
    assert second.ran == []
    assert second.results["a.one"] == first.results["a.one"]
    assert (second.results["a.one"].text, second.results["a.one"].values) == ("hello", {"x": 1})


def test_python_c_and_child_processes_are_captured_in_the_order_they_printed(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": snippet("""
                import ctypes, subprocess, sys
                print("python")
                ctypes.CDLL(None).puts(b"c")
                subprocess.run(["echo", "child"])
                print("error stream", file=sys.stderr)
                print("python again")
            """)
        }
    )
    assert ran(root).results["a.one"].text.splitlines() == ["python", "c", "child", "error stream", "python again"]


def test_a_warning_shows_no_line_number(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("import warnings\nwarnings.warn('mind the gap')")})
    assert ran(root).results["a.one"].text == "UserWarning: mind the gap"


def test_figures_come_in_the_order_they_were_created_and_the_same_on_every_run(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": snippet("""
                import matplotlib.pyplot as plt
                for title in ("first", "second"):
                    plt.figure()
                    plt.title(title)
            """)
        }
    )
    figures = ran(root).results["a.one"].figures
    assert ["first" in figures[0], "second" in figures[1]] == [True, True]
    assert ran(root, force=["a.one"]).results["a.one"].figures == figures
    assert "currentColor" in figures[0]


def test_a_need_gets_what_the_other_example_returned(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": HEAD + "class Thing:\n    x = 41\n\n@example\ndef made():\n    return Thing()\n",
            "b": HEAD + "from snippets.a import made\n\n@example\ndef used(made):\n    print(made.x + 1)\n",
        }
    )
    assert ran(root, ["b.used"]).results["b.used"].text == "42"


def test_an_edit_to_what_reads_a_need_does_not_run_the_need_again(write_book: Callable[..., Path]) -> None:
    source = (
        HEAD
        + "@example\ndef trained():\n    return {'x': 2}\n\n"
        + "@example\ndef plot(trained):\n    print(trained['x'] * FACTOR)\n"
    )
    root = write_book({"a": source.replace("FACTOR", "3")})
    ran(root)
    write_book({"a": source.replace("FACTOR", "4")})
    again = ran(root)
    assert (again.ran, again.results["a.plot"].text) == (["a.plot"], "8")


def test_a_need_that_comes_out_as_before_spares_what_reads_it(write_book: Callable[..., Path]) -> None:
    source = HEAD + "@example\ndef made():\n    return {'x': VALUE}\n\n@example\ndef used(made):\n    print(made)\n"
    root = write_book({"a": source.replace("VALUE", "2")})
    ran(root)
    book = Book.read(root)
    forced = run(book, Store(root), book.examples, progress=Progress(io.StringIO()), force=["a.made"])
    assert forced.ran == ["a.made"]


def test_a_timing_that_varies_is_passed_on_as_it_last_came_out(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": HEAD + "import time\n\n@example(varies=True)\ndef timing():\n    return {'t': time.time()}\n\n"
            "@example\ndef plot(timing):\n    return timing\n"
        }
    )
    ran(root)
    again = ran(root, force=["a.timing"])
    assert again.results["a.plot"].values == again.results["a.timing"].values
    assert ran(root).ran == []


def test_a_need_that_cannot_be_handed_on_says_so(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {"a": HEAD + "@example\ndef made():\n    return lambda: 1\n\n@example\ndef used(made):\n    print(made)\n"}
    )
    outcomes = ran(root)
    assert "a.made" in outcomes.results
    assert "cannot be handed on" in outcomes.failures["a.used"].message


def test_a_file_that_an_example_read_makes_it_stale_when_it_changes(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("print(open('data.txt').read())")})
    (root / "data.txt").write_text("one")
    assert ran(root).results["a.one"].text == "one"
    assert ran(root).ran == []
    (root / "data.txt").write_text("two")
    assert ran(root).results["a.one"].text == "two"


def test_a_file_that_was_missing_makes_it_stale_when_it_appears(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {"a": snippet("try:\n    print(open('data.txt').read())\nexcept FileNotFoundError:\n    print('none')")}
    )
    assert ran(root).results["a.one"].text == "none"
    (root / "data.txt").write_text("some")
    assert ran(root).results["a.one"].text == "some"


def test_a_module_that_is_edited_while_it_runs_leaves_no_result(write_book: Callable[..., Path]) -> None:
    source = snippet("import time\ntime.sleep(1)\nprint(helper())").replace(
        "@example", "def helper():\n    return 1\n\n@example"
    )
    root = write_book({"a": source})
    threading.Timer(0.5, lambda: write_book({"a": source.replace("return 1", "return 2")})).start()
    assert fail(root, "a.one").message == "snippets/a.py changed while it ran; build again"
    assert ran(root).results["a.one"].text == "2"


def test_two_edits_of_one_length_within_a_second_are_told_apart(
    write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    root = write_book({})
    for digit in "1234":
        write_book({"a": snippet(f"print({digit})")})
        assert ran(root).results["a.one"].text == digit


def test_an_example_may_not_write_into_the_repository(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("open('docs/made.md', 'w')")})
    assert "may not write into the repository (docs/made.md)" in fail(root, "a.one").message
    assert not (root / "docs/made.md").exists()


def test_an_exception_names_the_line_that_raised_without_frames_of_the_engine(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": HEAD + "def helper():\n    raise ValueError('no')\n\n@example\ndef one():\n    helper()\n"})
    failure = fail(root, "a.one")
    assert (failure.path, failure.line, failure.message) == ("snippets/a.py", 3, "ValueError: no")
    assert failure.trace[0] == "snippets/a.py:7 in one"
    assert not any("executed/" in line for line in failure.trace)


@pytest.mark.parametrize(
    ("body", "options", "message", "line"),
    [
        ("while True:\n    pass", "timeout=0.5", "ran longer than its limit of 0.5 s", (6, 7)),
        ("x = 1\nimport os\nos._exit(3)", "", "ended by itself with exit status 3", (8,)),
        ("import sys\nsys.exit(2)", "", "called sys.exit(2)", (7,)),
        (
            "kept = []\nwhile True:\n    kept.append(bytearray(10**7))",
            "memory=0.3",
            "ran out of its memory limit",
            (8,),
        ),
        ("while True:\n    print('x' * 1000)", "", "printed more than 1 MiB", (5, 6, 7)),
        ("import ctypes\nctypes.string_at(0)", "", "ended by signal 11", (7,)),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "", "ended by signal 9", (5,)),
        ("raise KeyboardInterrupt", "", "KeyboardInterrupt", (6,)),
    ],
    ids=["loop", "os._exit", "sys.exit", "memory", "flood", "segfault", "killed", "interrupt"],
)
def test_an_example_that_ends_badly_costs_only_itself(
    write_book: Callable[..., Path], body: str, options: str, message: str, line: tuple[int, ...]
) -> None:
    root = write_book({"a": snippet(body, options), "b": snippet("print('fine')")})
    outcomes = ran(root)
    failure = outcomes.failures["a.one"]
    assert message in failure.message
    assert failure.path == "snippets/a.py"
    assert failure.line in line
    assert outcomes.results["b.one"].text == "fine"
    assert ran(root).ran == ["a.one"], "a failure is never stored, a result always"


def test_a_time_limit_ends_the_processes_that_the_example_started(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("import subprocess\nsubprocess.run(['sleep', '61.37'])", "timeout=0.5")})
    assert "ran longer" in fail(root, "a.one").message
    assert eventually(lambda: not alive("sleep 61.37"))


def test_a_process_that_an_example_leaves_behind_is_ended(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("import subprocess\nsubprocess.Popen(['sleep', '62.37'])")})
    assert "a.one" in ran(root).results
    assert eventually(lambda: not alive("sleep 62.37"))


def test_an_error_that_is_the_point_is_shown_and_its_absence_fails(write_book: Callable[..., Path]) -> None:
    source = (
        HEAD
        + "@example(raises=ValueError)\ndef one():\n    int('x')\n\n"
        + "@example(raises=ValueError)\ndef two():\n    int('1')\n"
    )
    outcomes = ran(write_book({"a": source}))
    assert outcomes.results["a.one"].text == "ValueError: invalid literal for int() with base 10: 'x'"
    assert "was to raise ValueError and did not" in outcomes.failures["a.two"].message


def test_what_needs_a_failed_example_says_so_and_does_not_run(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": HEAD + "@example\ndef made():\n    1 / 0\n\n@example\ndef used(made):\n    print('ran')\n"})
    outcomes = ran(root)
    assert "it needs a.made, which failed" in outcomes.failures["a.used"].message
    assert outcomes.ran == ["a.made"]


def test_a_remembered_failure_is_not_tried_again_until_something_it_depends_on_changes(
    write_book: Callable[..., Path],
) -> None:
    root = write_book(
        {
            "a": HEAD
            + "@example\ndef made():\n    return open('x.txt').read()\n\n@example\ndef used(made):\n    print(made)\n"
        }
    )
    first = ran(root)
    assert ran(root, remembered=first.failures).ran == []
    (root / "x.txt").write_text("here now")
    assert ran(root, remembered=first.failures).results["a.used"].text == "here now"


def test_examples_run_side_by_side_and_a_timing_runs_alone(write_book: Callable[..., Path]) -> None:
    body = "import time\nstart = time.time()\ntime.sleep(0.3)\nreturn {'start': start, 'end': time.time()}"
    root = write_book({"a": snippet(body), "b": snippet(body), "c": snippet(body, "alone=True")})
    times = {name: result.values for name, result in ran(root, workers=2).results.items()}
    assert times["a.one"]["start"] < times["b.one"]["end"]
    assert times["b.one"]["start"] < times["a.one"]["end"]
    assert all(
        times[n]["end"] <= times["c.one"]["start"] or times["c.one"]["end"] <= times[n]["start"]
        for n in ("a.one", "b.one")
    )


def test_torch_threads_are_one_unless_asked_for(write_book: Callable[..., Path]) -> None:
    body = "import torch\nreturn {'threads': torch.get_num_threads()}"
    root = write_book({"a": snippet(body), "b": snippet(body, "threads=2, alone=True")})
    results = ran(root).results
    assert [results["a.one"].values["threads"], results["b.one"].values["threads"]] == [1, 2]


def test_any_executor_does(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("print('far away')"), "b": snippet("1 / 0")})
    with ProcessPoolExecutor(2) as executor:
        outcomes = ran(root, executor=executor, execute=run_apart)
    assert outcomes.results["a.one"].text == "far away"
    assert "ZeroDivisionError" in outcomes.failures["b.one"].message


def test_a_server_that_is_killed_costs_one_more_try(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("import time\nprint('begun')\ntime.sleep(1)\nprint('done')")})
    pool = Pool(root)
    folder = Store(root).folder / "tmp"

    def kill_server() -> None:
        eventually(lambda: any(file.stat().st_size for file in folder.glob("*/output")))
        assert pool._server is not None
        pool._server.process.kill()

    threading.Thread(target=kill_server).start()
    assert ran(root, pool=pool).results["a.one"].text == "begun\ndone"
    pool.close()


def test_a_job_of_the_next_server_does_not_go_with_the_last_one(
    write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would run twice at once, and both would print into one file."""
    counts = "import time\nopen('.times', 'a').write('once ')\ntime.sleep(1.5)\nprint('done')"
    root = write_book({"a": snippet("print('fine')"), "b": snippet(counts)})
    pool, end_marked = Pool(root), executed.pool._end_marked
    ran(root, ["a.one"], pool=pool)
    assert pool._server is not None

    def slowly(mark: str) -> None:  # so that the next server is at work before the end of the last is known
        time.sleep(1)
        end_marked(mark)

    monkeypatch.setattr(executed.pool, "_end_marked", slowly)
    pool._server.process.kill()
    pool._server.process.wait()
    assert ran(root, ["b.one"], pool=pool).results["b.one"].text == "done"
    pool.close()
    assert (root / ".times").read_text() == "once "


def test_an_example_that_ends_the_fork_server_costs_only_itself(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": snippet("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
            "b": snippet("import time\ntime.sleep(0.5)\nprint('fine')"),
        }
    )
    outcomes = ran(root, workers=2)
    assert "the process that starts the examples ended twice" in outcomes.failures["a.one"].message
    assert outcomes.results["b.one"].text == "fine"


@pytest.mark.skipif(sys.platform != "linux", reason="needs what Linux has for it")
@pytest.mark.parametrize("end", ["", "os.abort()", "os.kill(os.getppid(), 9)", "time.sleep(9)"])
def test_a_daemon_in_a_session_of_its_own_is_ended_with_its_example(write_book: Callable[..., Path], end: str) -> None:
    marker = f"sleep 7{len(end)}.39"
    body = f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', {marker.split()!r})\n"
    root = write_book({"a": snippet(f"{body}time.sleep(0.1)\n{end}", "timeout=0.5")})
    ran(root)
    assert eventually(lambda: not alive(marker), 2)


def test_a_server_whose_build_was_killed_ends_without_a_word(write_book: Callable[..., Path]) -> None:
    command = [sys.executable, "-m", "executed.worker", "serve"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert server.stdout
    server.stdout.close()
    server.stdout = None
    assert server.communicate(f"{write_book({})}\n".encode(), timeout=10)[1] == b""
    assert server.returncode == 0


def test_exit_handlers_that_hang_and_threads_that_go_on_are_not_waited_for(write_book: Callable[..., Path]) -> None:
    body = "import atexit, threading, time\nthreading.Thread(target=time.sleep, args=[60]).start()\n"
    root = write_book({"a": snippet(f"{body}atexit.register(time.sleep, 60)\nprint('done')", "timeout=5")})
    assert ran(root).results["a.one"].text == "done"
    assert ran(root, force=["a.one"], execute=run_apart).results["a.one"].text == "done"


def test_a_process_that_an_example_forks_leaves_no_outcome_of_its_own(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("import os, time\nchild = os.fork() == 0\nreturn {'child': child}")})
    assert ran(root).results["a.one"].values == {"child": False}


def test_an_example_may_close_its_output_but_not_lose_any(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": snippet("import sys\nprint('said')\nsys.stdout.close()\nsys.stderr = None"),
            "b": snippet("import os\nprint('said', end='')\nos.close(1)"),
        }
    )
    outcomes = ran(root)
    assert outcomes.results["a.one"].text == "said"
    assert "what it printed could not be written: OSError: [Errno 9]" in outcomes.failures["b.one"].message


def test_an_example_may_put_its_own_in_the_place_of_what_the_engine_uses(write_book: Callable[..., Path]) -> None:
    body = "import builtins, json\nbuiltins.open = builtins.print = json.dumps = json.loads = None\nint('x')"
    root = write_book({"a": snippet(body, "raises=ValueError")})
    assert ran(root).results["a.one"].text == "ValueError: invalid literal for int() with base 10: 'x'"


def test_more_output_than_allowed_is_refused_even_if_it_comes_at_once(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("print('x' * 2**20)"), "b": snippet("print('x' * (2**20 - 1))")})
    outcomes = ran(root)
    assert "printed more than 1 MiB" in outcomes.failures["a.one"].message
    assert len(outcomes.results["b.one"].text) == 2**20 - 1


@pytest.mark.parametrize("options", ["", "files=['data.txt']"])
def test_a_file_that_changes_while_an_example_reads_it_leaves_no_result(
    write_book: Callable[..., Path], options: str
) -> None:
    edit = "import subprocess\nsubprocess.run('echo two > data.txt', shell=True)"
    source = f"print(open('data.txt').read())\n{edit}"
    root = write_book({"a": snippet(edit if options else source, options)})
    (root / "data.txt").write_text("one")
    assert fail(root, "a.one").message == "data.txt changed while it ran; build again"


def test_a_need_that_changed_since_the_build_began_is_not_handed_on(write_book: Callable[..., Path]) -> None:
    root = write_book(
        {
            "a": HEAD
            + "@example\ndef made():\n    return 1\n\n"
            + "@example\ndef spoilt(made):\n    from pathlib import Path\n"
            + "    for file in Path('.executed/results/a.made').glob('*.pickle'):\n        file.write_bytes(b'')\n\n"
            + "@example\ndef used(made, spoilt):\n    print(made)\n"
        }
    )
    failure = fail(root, "a.used")
    assert "it is not what it was when this build began; build again" in failure.message
    assert failure.fingerprint == "", "a reason outside the example: the next build tries again"
    assert ran(root).results["a.used"].text == "1"


def test_an_object_that_cannot_be_written_is_a_failure_and_no_result(write_book: Callable[..., Path]) -> None:
    body = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\nreturn {'x': 'x' * 10000}"
    assert "File too large" in fail(write_book({"a": snippet(body)}), "a.one").message


def test_an_example_that_deletes_its_own_folder_says_what_to_look_for(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("import shutil\nshutil.rmtree('.executed/tmp')")})
    failure = fail(root, "a.one")
    assert "what came of it could not be written" in failure.message
    assert failure.fingerprint == "", "a reason outside the example: the next build tries again"


def test_what_matplotlib_says_of_its_caches_is_no_output(
    write_book: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLCONFIGDIR", "/dev/null/nowhere")
    root = write_book({"a": snippet("import matplotlib\nprint(bool(matplotlib.get_cachedir()))")})
    assert ran(root).results["a.one"].text == "True"


BUILD = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
from pathlib import Path
from executed.book import Book
from executed.runner import run
from executed.store import Store
book = Book.read(Path(sys.argv[1]))
run(book, Store(book.root), book.examples)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_process_and_keeps_what_had_finished(
    write_book: Callable[..., Path], number: signal.Signals
) -> None:
    marker = f"sleep 7{number}.53"
    root = write_book(
        {"a": snippet("print('kept')"), "b": snippet(f"import subprocess\nsubprocess.run({marker.split()!r})")}
    )
    build = subprocess.Popen([sys.executable, "-c", BUILD, str(root)], stderr=subprocess.DEVNULL)
    assert eventually(lambda: alive(marker) and any((root / ".executed/results/a.one").glob("*.json")))
    build.send_signal(number)
    begun = time.monotonic()
    assert build.wait(5) != 0
    assert time.monotonic() - begun < 2
    assert eventually(lambda: not alive(marker) and not alive(f"executed.worker.*{root}"))
    book = Book.read(root)
    assert run(book, Store(root), ["a.one"], progress=Progress(io.StringIO())).ran == []


def test_builds_at_once_do_no_harm_and_share_the_work(write_book: Callable[..., Path]) -> None:
    body = "import time\ntime.sleep(0.2)\nprint('x' * 10000)\nreturn {'big': list(range(1000))}"
    root = write_book({f"m{n}": snippet(body) for n in range(4)})
    command = [sys.executable, "-c", BUILD, str(root)]
    builds = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [build.communicate(timeout=60)[1] for build in builds]
    assert [build.returncode for build in builds] == [0, 0, 0]
    assert sum(text.count(" left\n") for text in said) == 4
    outcomes = ran(root)
    assert outcomes.ran == []
    assert all(len(result.text) == 10000 for result in outcomes.results.values())


def test_progress_says_which_example_how_long_and_how_many_are_left(write_book: Callable[..., Path]) -> None:
    root = write_book({"a": snippet("print(1)"), "b": snippet("1 / 0")})
    stream = io.StringIO()
    book = Book.read(root)
    run(book, Store(root), book.examples, progress=Progress(stream), workers=1)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(" s, 1 left")
    assert any(line.startswith("  FAILED b.one") for line in lines)


def test_what_may_take_longest_starts_first_where_nothing_is_known(write_book: Callable[..., Path]) -> None:
    lines = ["from executed import example"]
    for name, limit in ("short", 10), ("long", 300), ("usual", 60):
        lines += [f"@example(timeout={limit})", f"def {name}():", f"    print({name!r})"]
    book = Book.read(write_book({"a": "\n".join(lines)}))
    assert run(book, Store(book.root), book.examples, workers=1).ran == ["a.long", "a.usual", "a.short"]

"""The engine from a terminal: `executed run`, `record`, `status`, `check`, `verify`, `stage`, `pdf` and `gc`."""

import argparse
import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from executed import unused
from executed.book import Book, BookError, Problem, find_root, nearest
from executed.fingerprint import Fingerprints
from executed.outside import fetch, missing
from executed.render import Page
from executed.runner import look, run
from executed.stage import chapters, stage
from executed.staged import Staged
from executed.store import Result, Store, failure_text
from executed.verify import varies, verify


def run_example(root: Path, arguments: argparse.Namespace) -> int:
    """Run one example, even if its result is up to date, and show what a reader would see."""
    book, store = Book.read(root), Store(root)
    name = _known(book, arguments.name)
    example = book.examples[name]
    for need in {need for one in book.order([name]) for need in book.examples[one].options.needs}:
        try:
            fetch(need)
        except LookupError as error:
            raise BookError(Problem(example.path, example.line, str(error))) from None
    outcomes = run(book, store, [name], force=[name])
    if name in outcomes.absent:
        raise BookError(Problem(example.path, example.line, f"{name} needs {outcomes.absent[name]}"))
    if name in outcomes.failures:
        print(failure_text(outcomes.failures[name]), file=sys.stderr)
        return 1
    result = outcomes.results[name]
    if result.text:
        print(result.text)
    for number, svg in enumerate(result.figures, 1):
        file = Path(tempfile.gettempdir()) / f"{name}-{number}.svg"
        file.write_text(svg, "utf-8")
        print(f"[figure {number}: {file}]")
    for key, value in result.values.items():
        print(f"{name}.{key} = {json.dumps(value, ensure_ascii=False)}"[:500])
    return 0


def _known(book: Book, name: str) -> str:
    if name not in book.examples:
        raise BookError(Problem("snippets", 1, book.why_missing(name)))
    return name


def record(root: Path, arguments: argparse.Namespace) -> int:
    """Keep the result of an example for commit, because what it needs cannot be had on every machine."""
    book, store = Book.read(root), Store(root)
    name = _known(book, arguments.name)
    if status := run_example(root, arguments):
        return status
    fingerprints = Fingerprints(book)
    result = store.load(name, fingerprints.of(name).digest)
    assert result is not None
    print(f"written: {store.write_record(result, fingerprints.code(name)).relative_to(root)}")
    return 0


def status(root: Path, arguments: argparse.Namespace) -> int:
    """Say of each example whether it is fresh, stale and why, or failed, and how long it took. Nothing runs."""
    book, store = Book.read(root), Store(root)
    fingerprints = Fingerprints(book)
    found: dict[str, Result] = {}
    for name in book.order(book.examples):
        result, why = look(book, store, name, fingerprints.of(name), found)
        failure = store.failure(name)
        stale = [need for need in book.examples[name].needs if need not in found]
        lacks = list(filter(None, map(missing, book.examples[name].options.needs)))
        took = f"  (took {old.seconds:.2f} s)" if (old := store.newest(name)) else ""
        if result and not stale:
            found[name] = result
            print(f"fresh   {name}  {result.seconds:.2f} s")
        elif lacks:
            print(f"{'record ' if store.record(name) else 'absent '} {name}  needs {lacks[0]}")
        elif failure and failure.fingerprint == fingerprints.of(name).digest:
            print(f"failed  {name}  {failure.path}:{failure.line}: {failure.message.splitlines()[0]}")
        else:
            print(f"stale   {name}  {why or 'needs ' + ', '.join(stale)}{took}")
    for problem in book.problems:
        print(f"broken  {problem}")
    return 0


def check(root: Path, arguments: argparse.Namespace) -> int:
    """Say what is left to mend in the book, or in one chapter, as path:line lines.

    Of every chapter:
      examples     each example runs within its limits, in the order of its needs; each name, value, filter and option
                   in a directive exists; each figure has a text for those who cannot see it; a chapter shows or
                   quotes each example, or a reference figure or another example asks for it
      numbers      no number is typed into prose, alt texts and captions, unless its sentence cites a source, it
                   belongs to a name, a date, a heading, code or a formula, or its line says why it is constant
      citations    each key has an entry in docs/references.bib
      figures      each reference figure that its examples are held against is reached within its tolerance
      tests        tests/test_<chapter>.py has tests, and they ask for what the chapter shows
      records      each committed result was made by the code that is there now

    Of the whole book only, not of one chapter:
      sources      a chapter cites each entry of docs/references.bib

    A note is no mistake, and the exit status does not count it:
      values       something reads each value that an example returns: a chapter, a reference figure, a test, or an
                   example that needs it

    Of one chapter, only what that chapter shows and quotes is run.
    """
    pages = chapters(root)
    only = _chapter(pages, arguments.chapter) if arguments.chapter else ""
    staged = stage(root, only=only)
    book = Book.read(root)
    tests, notes = unused.tests(book, pages), unused.values(book, pages)
    if only:
        tests, notes = unused.about(only, tests), unused.about(only, notes)
    for note in notes:
        print(f"note: {note}")
    return _complain([*staged.report(), *map(str, [*staged.strict, *tests])], staged)


def _chapter(pages: list[Page], name: str) -> str:
    """The path of the chapter that a person means by `multi-head`, `vi/multi-head` or `docs/multi-head.md`."""
    known = {page.path.removeprefix("docs/").removesuffix(".md"): page.path for page in pages}
    wanted = name.removeprefix("docs/").removesuffix(".md")
    if wanted not in known:
        raise BookError(Problem("docs", 1, f"there is no chapter {wanted}{nearest(wanted, known)}"))
    return known[wanted]


def verify_book(root: Path, arguments: argparse.Namespace) -> int:
    """Run everything (or the examples named) again in fresh processes, and compare with what is stored."""
    book, store = Book.read(root), Store(root)
    names = [_known(book, name) for name in arguments.names] or list(book.examples)
    verdicts = list(verify(book, store, names))
    differing = [verdict for verdict in verdicts if verdict.differences]
    print(*differing, sep="\n\n", end="\n\n" if differing else "")
    varying = [verdict.name for verdict in verdicts if varies(book, verdict.name)]
    print(f"{len(verdicts) - len(differing)} of {len(verdicts)} examples came out as stored", end="")
    print(f"; {len(varying)} of them vary, and only their shape is compared: {', '.join(varying)}" if varying else "")
    return 1 if differing else 0


def write_stage(root: Path, arguments: argparse.Namespace) -> int:
    """Write the finished Markdown and figures into a folder, for any site generator."""
    staged = stage(root)
    if staged.report():
        return _complain(staged.report(), staged)
    target = Path(arguments.folder).resolve()
    docs = root / "docs"
    if target == root or target.is_relative_to(docs) or docs.is_relative_to(target):
        raise BookError(Problem(str(target), 1, "stage into a folder of its own, outside docs/"))
    if target.exists() and any(target.iterdir()) and not (target / ".staged").exists():
        raise BookError(Problem(str(target), 1, "this folder holds other files; name an empty or a new one"))
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=_made(target.parent)))
    shutil.copytree(docs, fresh, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.md"))
    (fresh / ".staged").touch()
    for path, text in staged.pages.items():
        (_made((fresh / path).parent) / Path(path).name).write_text(text, "utf-8")
    for name, svg in staged.figures.items():
        (_made(fresh / "figures") / name).write_text(svg, "utf-8")
    for path, text in staged.files.items():
        (_made((fresh / path).parent) / Path(path).name).write_text(text, "utf-8")
    if target.exists():
        shutil.rmtree(target)
    fresh.chmod(0o755)
    os.replace(fresh, target)
    print(f"{len(staged.pages)} pages and {len(staged.figures)} figures in {target}; {staged.summary()}")
    return 0


def print_pdf(root: Path, arguments: argparse.Namespace) -> int:
    """Build the book and print it into one PDF, with contents, outline and links between its chapters.

    Needs Chromium and the packages of `pip install -e ".[pdf]"`.
    """
    from executed.pdf import print_book  # here: what it needs is optional

    target = Path(arguments.file).resolve()
    pages = print_book(root, target)
    print(f"{pages} pages, {target.stat().st_size / 1e6:.1f} MB: {target}")
    return 0


def gc(root: Path, arguments: argparse.Namespace) -> int:
    """Delete stored results that no example has any more."""
    book = Book.read(root)
    fingerprints = Fingerprints(book)
    deleted = list(Store(root).collect({(name, fingerprints.of(name).digest) for name in book.examples}))
    print(f"{len(deleted)} files deleted")
    return 0


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _complain(complaints: list[str], staged: Staged) -> int:
    for complaint in complaints:
        print(complaint, end="\n\n" if "\n" in complaint else "\n")
    print(f"{len(complaints)} to mend; {staged.summary()}" if complaints else f"nothing to mend; {staged.summary()}")
    return 1 if complaints else 0


COMMANDS: dict[str, tuple[Callable[[Path, argparse.Namespace], int], Sequence[str]]] = {
    "run": (run_example, ["name"]),
    "record": (record, ["name"]),
    "status": (status, []),
    "check": (check, ["chapter?"]),
    "verify": (verify_book, ["names*"]),
    "stage": (write_stage, ["folder"]),
    "pdf": (print_pdf, ["file"]),
    "gc": (gc, []),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="executed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (function, positionals) in COMMANDS.items():
        words_for_it = inspect.getdoc(function) or ""
        command = commands.add_parser(
            name,
            help=words_for_it.partition("\n")[0],
            description=words_for_it,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for positional in positionals:
            command.add_argument(positional.rstrip("?*"), nargs=positional[-1] if positional[-1] in "?*" else None)
    arguments = parser.parse_args(words)
    try:
        status = COMMANDS[arguments.command][0](find_root(Path.cwd()), arguments)
        print(end="", flush=True)
        return status
    except BookError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; finished results are kept", file=sys.stderr)
    except BrokenPipeError:  # whoever reads has seen enough, as with `executed status | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

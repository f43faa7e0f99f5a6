"""The same chapters in each tool's own page format: one small class a contender, ours first."""

import ast
import re
import textwrap
from pathlib import Path

from workload import HEADINGS, HEAVY, Chapter

ROOT = Path(__file__).resolve().parents[2]
CELL_TIMEOUT = 30
"""Seconds a cell may take; set wherever a tool has such a setting."""
WORKLOAD = ("torch==2.13.0", "matplotlib", "numpy")
MKDOCS = "site_name: Bench\ntheme: {name: material}\n"

Files = dict[str, str]


class Contender:
    """One tool: how it is installed, how the book is written for it, how it is built."""

    name = ""
    requirements: tuple[str, ...] = ()
    """What pip installs beside the workload's own packages; nothing for the environment that runs the benchmark."""
    path = ""
    """The project folder that cells import from, where the tool does not see to it."""

    def files(self, chapters: list[Chapter], common: str, strict: bool) -> Files:
        """The whole project; `strict`: an error in a cell must fail the build."""
        raise NotImplementedError

    def command(self, strict: bool) -> list[str]:
        raise NotImplementedError

    def page(self, name: str) -> str:
        """The built page of a chapter."""
        raise NotImplementedError


class Executed(Contender):
    """This repository's engine. Each cell is an example; what later cells use is handed on through needs."""

    name = "executed"

    def files(self, chapters: list[Chapter], common: str, strict: bool) -> Files:
        settings = f"hooks: ['{ROOT / 'executed/hook.py'}']\nmarkdown_extensions: [attr_list, pymdownx.superfences]\n"
        return {
            **{f"snippets/{chapter.name}.py": snippet_module(chapter) for chapter in chapters},
            "snippets/common.py": common,
            **{f"docs/{chapter.name}.md": chapter_page(chapter) for chapter in chapters},
            "docs/index.md": "# Bench\n",
            "pyproject.toml": '[tool.executed]\npreload = ["torch", "matplotlib.pyplot"]\n',
            "mkdocs.yml": MKDOCS + settings + navigation(chapters, "{}.md"),
        }

    def command(self, strict: bool) -> list[str]:
        return ["mkdocs", "build", *(["--strict"] if strict else [])]

    def page(self, name: str) -> str:
        return f"site/{name}/index.html"


EXAMPLES = [heading.lower().replace(" ", "_") for heading in HEADINGS]


def snippet_module(chapter: Chapter) -> str:
    """A chapter's cells as examples, its imports and functions as a module's own, as our authors write them."""
    imports, functions, examples = "from executed import example\n", "", ""
    owner: dict[str, int] = {}
    cells = [_split(cell) for cell in chapter.cells]
    for number, (imported, defined, body) in enumerate(cells):
        imports += imported.replace("import common", "from snippets import common")
        functions += defined
        taken = {name: owner[name] for name in sorted(_read(body) & owner.keys())}
        changed = {name for name in taken if (chapter.name, name) == (HEAVY, "net") and "optimizer.step" in body}
        owner |= dict.fromkeys(_names(body, ast.Store) | changed, number)
        later = set().union(*(_read(other) for _, _, other in cells[number + 1 :]))
        given = sorted(name for name, cell in owner.items() if cell == number and name in later)
        lines = [f'{name} = {EXAMPLES[cell]}["{name}"]' for name, cell in taken.items()]
        if "randn(1, 200)" in body or "Linear" in body:  # the next draws of the generator that the first cell seeded
            taken["generator"] = 0
            lines.append(f'torch.set_rng_state({EXAMPLES[0]}["generator"])')
        handed = [f'"{name}": {name}' for name in given] + ['"generator": torch.get_rng_state()'] * (number == 0)
        lines += [body.strip(), *([f"return {{{', '.join(handed)}}}"] if handed else [])]
        parameters = ", ".join(EXAMPLES[cell] for cell in sorted(set(taken.values())))
        examples += f"\n\n@example(timeout={CELL_TIMEOUT})\ndef {EXAMPLES[number]}({parameters}):\n"
        examples += textwrap.indent("\n".join(lines), "    ") + "\n"
    return f'"""{chapter.title}."""\n\n{imports}{functions}{examples}'


def _split(cell: str) -> tuple[str, str, str]:
    """A cell's imports, its functions, and the rest."""
    lines = cell.splitlines(keepends=True)
    imports, functions = "", ""
    for node in reversed(ast.parse(cell).body):
        text = "".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports = text + imports
        elif isinstance(node, ast.FunctionDef):
            functions = f"\n\n{text}{functions}"
        else:
            continue
        del lines[node.lineno - 1 : node.end_lineno]
    return imports, functions, re.sub(r"\n{3,}", "\n\n", "".join(lines))


def _names(code: str, context: type[ast.expr_context]) -> set[str]:
    nodes = ast.walk(ast.parse(code))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def _read(code: str) -> set[str]:
    """Names that a cell reads and does not bind itself."""
    return _names(code, ast.Load) - _names(code, ast.Store)


def chapter_page(chapter: Chapter) -> str:
    """A chapter for our engine: prose and directives. The lint wants a reason for a number that is typed in."""
    blocks, examples = [], iter(EXAMPLES)
    for part in chapter.parts:
        if part.kind == "md":
            blocks.append(
                re.sub(r"^Chapter \d", r"\g<0><!-- constant: its place in the book -->", part.text, flags=re.M)
            )
            continue
        functions = re.findall(r"^def (\w+)", part.text, re.M)
        blocks += [f'{{{{ code("{chapter.name}.{function}") }}}}' for function in functions]
        alt = f', alt="{chapter.title}"' if "plt.show()" in part.text else ""
        blocks.append(f'{{{{ example("{chapter.name}.{next(examples)}"{alt}) }}}}')
    return "\n\n".join(blocks) + "\n"


class MkdocsGallery(Contender):
    name = "mkdocs_gallery"
    requirements = ("mkdocs-material", "mkdocs-gallery")
    path = "docs/examples"

    def files(self, chapters: list[Chapter], common: str, strict: bool) -> Files:
        settings = (
            "plugins:\n  - search\n  - gallery:\n"
            "      examples_dirs: docs/examples\n      gallery_dirs: docs/generated\n"
            "      ignore_pattern: common\n      within_subsection_order: FileNameSortKey\n"
        )
        errors = "      abort_on_example_error: true\n" if strict else ""
        return {
            **{f"docs/examples/plot_{chapter.name}.py": gallery(chapter) for chapter in chapters},
            "docs/examples/common.py": common,
            "docs/examples/README.md": "# Chapters\n",
            "docs/index.md": "# Bench\n",
            "mkdocs.yml": f"{MKDOCS}{settings}{errors}nav:\n  - index.md\n  - generated\n",
        }

    def command(self, strict: bool) -> list[str]:
        return ["mkdocs", "build", *(["--strict"] if strict else [])]

    def page(self, name: str) -> str:
        return f"site/generated/plot_{name}/index.html"


class SphinxGallery(Contender):
    name = "sphinx_gallery"
    requirements = ("sphinx", "sphinx-gallery", "furo")
    path = "examples"

    def files(self, chapters: list[Chapter], common: str, strict: bool) -> Files:
        settings = (
            "project = 'Bench'\nhtml_theme = 'furo'\nextensions = ['sphinx_gallery.gen_gallery']\n"
            "sphinx_gallery_conf = {\n    'examples_dirs': '../examples', 'gallery_dirs': 'auto_examples',\n"
            "    'ignore_pattern': r'common\\.py', 'within_subsection_order': 'FileNameSortKey',\n"
            f"    'abort_on_example_error': {strict},\n}}\n"
        )
        return {
            **{f"examples/plot_{chapter.name}.py": gallery(chapter, rst=True) for chapter in chapters},
            "examples/common.py": common,
            "examples/GALLERY_HEADER.rst": "Chapters\n========\n",
            "source/index.rst": "Bench\n=====\n\n.. toctree::\n\n   auto_examples/index\n",
            "source/conf.py": settings,
        }

    def command(self, strict: bool) -> list[str]:
        return ["sphinx-build", "-b", "html", *(["-W", "--keep-going"] if strict else []), "source", "site"]

    def page(self, name: str) -> str:
        return f"site/auto_examples/plot_{name}.html"


class MystNb(Contender):
    name = "myst_nb"
    requirements = ("myst-nb", "sphinx-book-theme", "ipykernel")

    def files(self, chapters: list[Chapter], common: str, strict: bool) -> Files:
        settings = (
            "project = 'Bench'\nhtml_theme = 'sphinx_book_theme'\nextensions = ['myst_nb']\n"
            f"nb_execution_mode = 'cache'\nnb_execution_timeout = {CELL_TIMEOUT}\n"
            f"nb_execution_raise_on_error = {strict}\n"
        )
        contents = "".join(f"{chapter.name}\n" for chapter in chapters)
        return {
            **{f"source/{chapter.name}.md": notebook(chapter) for chapter in chapters},
            "source/common.py": common,
            "source/index.md": f"# Bench\n\n```{{toctree}}\n{contents}```\n",
            "source/conf.py": settings,
        }

    def command(self, strict: bool) -> list[str]:
        return ["sphinx-build", "-b", "html", *(["-W", "--keep-going"] if strict else []), "source", "site"]

    def page(self, name: str) -> str:
        return f"site/{name}.html"


class MkdocsJupyter(Contender):
    name = "mkdocs_jupyter"
    requirements = ("mkdocs-material", "mkdocs-jupyter", "ipykernel")
    path = "docs"  # its kernels start in the project's folder, not beside the page

    def files(self, chapters: list[Chapter], common: str, strict: bool) -> Files:
        settings = (
            "exclude_docs: common.py\nplugins:\n  - search\n"
            "  - mkdocs-jupyter:\n      execute: true\n      ignore: ['common.py']\n"
        )
        errors = "      allow_errors: false\n" if strict else ""
        return {
            **{f"docs/{chapter.name}.py": percent(chapter) for chapter in chapters},
            "docs/common.py": common,
            "docs/index.md": "# Bench\n",
            "mkdocs.yml": MKDOCS + settings + errors + navigation(chapters, "{}.py"),
        }

    def command(self, strict: bool) -> list[str]:
        return ["mkdocs", "build", *(["--strict"] if strict else [])]

    def page(self, name: str) -> str:
        return f"site/{name}/index.html"


def navigation(chapters: list[Chapter], pattern: str) -> str:
    return "nav:\n  - index.md\n" + "".join(f"  - {one.title}: {pattern.format(one.name)}\n" for one in chapters)


def commented(text: str) -> str:
    return re.sub(r"^", "# ", text, flags=re.M).replace("# \n", "#\n")


def gallery(chapter: Chapter, rst: bool = False) -> str:
    """A script for sphinx-gallery or mkdocs-gallery: a docstring, then `# %%` blocks with commented text."""
    first, *rest = chapter.parts
    written = restructured if rst else str
    blocks = [f'"""\n{written(first.text)}\n"""']
    for part in rest:
        blocks.append(f"# %%\n{commented(written(part.text))}\n" if part.kind == "md" else f"\n{part.text}")
    return "\n".join(blocks) + "\n"


def restructured(text: str) -> str:
    """Markdown as reStructuredText, as far as the workload goes."""
    text = re.sub(r"^# (.+)$", lambda found: f"{found[1]}\n{'=' * len(found[1])}", text, flags=re.M)
    text = re.sub(r"^## (.+)$", lambda found: f"{found[1]}\n{'-' * len(found[1])}", text, flags=re.M)
    return re.sub(r"`([^`]+)`", r"``\1``", text)


def notebook(chapter: Chapter) -> str:
    """A MyST Markdown notebook."""
    head = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
    cells = [
        f"```{{code-cell}} python3\n{part.text}\n```" if part.kind == "code" else part.text for part in chapter.parts
    ]
    return head + "\n\n".join(cells) + "\n"


def percent(chapter: Chapter) -> str:
    """A Jupytext percent script."""
    kernel = (
        "---",
        "jupyter:",
        "  kernelspec:",
        "    display_name: Python 3",
        "    language: python",
        "    name: python3",
    )
    head = "".join(f"# {line}\n" for line in (*kernel, "---"))
    cells = [
        f"# %%\n{one.text}" if one.kind == "code" else f"# %% [markdown]\n{commented(one.text)}"
        for one in chapter.parts
    ]
    return f"{head}\n" + "\n\n".join(cells) + "\n"


OURS = Executed()
PEERS = (MkdocsGallery(), SphinxGallery(), MystNb(), MkdocsJupyter())

"""The MkDocs hook: hands the staged book to MkDocs. The only file of the engine that imports it."""

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from watchdog.observers.polling import PollingObserver

from executed import mathematics
from executed.book import SNIPPETS, BookError, find_root
from executed.capture import own_ids
from executed.staged import Staged, unchanged

if TYPE_CHECKING:
    from executed.pool import Pool

log = get_plugin_logger("executed")
FIGURE = re.compile(
    r'(?:<p>)?<img alt="(?P<alt>[^"]*)" src="[^"]*figures/(?P<file>[^"/]+\.svg)"'
    r'(?: title="(?P<caption>[^"]*)")? ?/?>(?:</p>)?'
)


class _Site:
    """What stays between the builds of one `mkdocs serve`, and of a build between its events."""

    serving = False
    pool: "Pool | None" = None
    staged: Staged | None = None
    converted: ClassVar[dict[str, tuple[object, dict[str, Any]]]] = {}
    """Pages by name: what each was converted from, and what MkDocs made of it."""


def on_startup(command: str, dirty: bool) -> None:
    _Site.serving = command == "serve"


def on_shutdown() -> None:
    if _Site.pool:
        _Site.pool.close()


def on_pre_build(config: MkDocsConfig) -> None:
    """Run what is needed, before MkDocs clears the site folder: a failing build leaves the last site as it was."""
    root = find_root(Path(config.config_file_path or ".").parent)
    try:
        staged = unchanged(root) or _staged_anew(root)
    except BookError as error:
        raise PluginError(str(error)) from None
    log.info(staged.summary())
    for problem in staged.strict:
        log.warning(str(problem))
    report = staged.report()
    if report and not _Site.serving:
        raise PluginError("\n\n".join(["the book has something to mend:", *report]))
    if staged.strict and config.strict and not _Site.serving:
        raise PluginError("a strict build refuses what is warned of above")
    for block in report:
        log.error(block)
    _Site.staged = staged


def _staged_anew(root: Path) -> Staged:
    # Imported only here: a build in which nothing has changed does without the runner and the renderer.
    from executed.pool import Pool
    from executed.stage import stage

    if _Site.serving and _Site.pool is None:
        _Site.pool = Pool(root)
    remembered = _Site.staged.failures if _Site.serving and _Site.staged else {}
    return stage(root, pool=_Site.pool, remembered=remembered)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    assert _Site.staged is not None
    for name, svg in _Site.staged.figures.items():
        files.append(
            File.generated(config, f"figures/{name}", content=f'<?xml version="1.0" encoding="utf-8"?>\n{svg}')
        )
    return files


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    assert _Site.staged is not None
    return _Site.staged.pages.get(page.file.src_uri)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """While a writer waits, convert only pages that read otherwise than before."""
    made_from, made = _Site.converted.get(page.file.src_uri, (None, {}))
    if _Site.serving and made_from == _made_from(markdown, config, files):
        page.render = lambda config, files: vars(page).update(made)  # type: ignore[method-assign]


def _made_from(markdown: str | None, config: MkDocsConfig, files: Files) -> object:
    """All that decides what MkDocs makes of a page: its text, the pages it may link to, and how Markdown is read."""
    settings = (config.markdown_extensions, config.mdx_configs, config.use_directory_urls)
    return markdown, sorted(files.src_uris), settings


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if _Site.serving:
        kept = ("content", "toc", "_title_from_render", "present_anchor_ids")
        made = {name: getattr(page, name, None) for name in kept}
        _Site.converted[page.file.src_uri] = _made_from(page.markdown, config, files), made
    # MkDocs looks for anchors on headings and in raw HTML only; ours stand on code.
    page.present_anchor_ids = (page.present_anchor_ids or set()) | set(re.findall(r' id="([^"]+)"', content))
    try:
        return mathematics.typeset(content)
    except ValueError as error:
        if not _Site.serving:
            raise PluginError(f"docs/{page.file.src_uri}: {error}") from None
        log.error(f"docs/{page.file.src_uri}: {error}")
        return content


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Put the figures in last, so that the search index need not read them."""
    number = itertools.count(1)
    return FIGURE.sub(lambda found: _inlined(found, next(number)), output)


def _inlined(found: re.Match[str], number: int) -> str:
    """A figure as part of the page, in the page's colours, with its caption."""
    assert _Site.staged is not None
    svg = _Site.staged.figures.get(found["file"])
    if svg is None:
        return found[0]
    svg = own_ids(svg, f"svg{number}").replace("<svg", f'<svg role="img" aria-label="{found["alt"]}"', 1)
    caption = f"<figcaption>{found['caption']}</figcaption>" if found["caption"] else ""
    return f'<figure class="drawn">{svg}{caption}</figure>'


def on_serve(server: LiveReloadServer, config: MkDocsConfig, builder: Any) -> LiveReloadServer:
    root = find_root(Path(config.config_file_path or ".").parent)
    # MkDocs looks for saved files twice a second; a writer waits for that each time.
    watched = [path for path in (config.docs_dir, config.config_file_path) if path]
    for path in watched:
        server.unwatch(path)
    server.observer = PollingObserver(timeout=0.1)
    for path in (*watched, str(root / SNIPPETS)):
        server.watch(path)
    return server

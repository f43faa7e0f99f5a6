"""The MkDocs hook: hands the staged book to MkDocs. It and beside.py alone import it."""

import contextlib
import gc
import itertools
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import markdown
from jinja2 import Environment
from mkdocs.commands.build import get_context
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

from executed import deadlinks, definitions, finish, head, mathematics, offline, policy
from executed.beside import Beside, use_our_words
from executed.book import SNIPPETS, BookError, Problem, find_root, no_garbage_collection
from executed.capture import own_ids
from executed.staged import Staged, saved_since, sources, unchanged

if TYPE_CHECKING:
    from mkdocs.livereload import LiveReloadServer

    from executed.pool import Pool

gc.freeze()  # what is imported by now stays: to look for garbage among it takes a tenth of a warm build
log = get_plugin_logger("executed")
XML = re.compile(r'\s*<\?xml version="1\.[01]"(?: encoding="utf-8")?(?: standalone="\w+")?\s*\?>', re.I)
ANCHORED = re.compile(r'(<div id="([^"]+)" class="[^"]*\bhighlight\b[^"]*"><pre)(?=>)')
FRONT_MATTER = ("title", "description", "hide")
# What a browser opens as a page of its own.
DOCUMENTS = (".html", ".htm", ".shtml", ".xhtml", ".xht", ".xml", ".xsl", ".mht", ".mhtml", ".svgz")
FIGURE = re.compile(
    r'<(?:p><)?img alt="(?P<alt>[^"]*)" src="[^"]*figures/(?P<file>[^"/]+\.svg)"'
    r'(?: title="(?P<caption>[^"]*)")? ?/?>(?:</p>)?'
)


class _Site:
    """What stays between the builds of one `mkdocs serve`, and of a build between its events."""

    serving = False
    pool: "Pool | None" = None
    staged: Staged | None = None
    converted: ClassVar[dict[str, tuple[object, dict[str, Any]]]] = {}
    """Pages by name: what each was converted from, and what MkDocs made of it."""
    ahead: Future[Environment] | None = None
    """The theme, whose templates are compiled while examples run."""
    theme: Environment
    base_url = "."
    """The way from the page that is being made to the site's root."""
    made: ClassVar[dict[str, Page]] = {}
    """The pages by their files in the site."""
    nav: Navigation
    beside: Beside
    shells: ClassVar[dict[str, str]] = {}
    """By base_url: what the theme makes of a page without content."""


def _mend(*problems: object) -> None:
    """End a build with what there is to mend. Who writes goes on writing, and sees it in the terminal."""
    words = "\n".join(dict.fromkeys(map(str, problems)))
    if words and not _Site.serving:
        raise PluginError(words)
    if words:
        log.error(words)


def on_startup(command: str, dirty: bool) -> None:
    _Site.serving = command == "serve"


def on_shutdown() -> None:
    if _Site.pool:
        _Site.pool.close()


@event_priority(50)  # first: the theme's plugin for pages that open from the disk would take a script from elsewhere
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    if not config.site_url:  # a list of absolute addresses, which MkDocs would else write without any
        config.theme.static_templates.discard("sitemap.xml")
    if _in(config, offline.REGISTRATION) and not _Site.serving:
        offline.settings(config["extra"], config.extra_javascript, _from_disk(config))
    return config


def _in(config: MkDocsConfig, path: str) -> bool:
    return (Path(config.docs_dir) / path).is_file()


def _from_disk(config: MkDocsConfig) -> bool:
    """Whether this build is to be opened without a server."""
    return any(name.endswith("offline") and plugin.config.get("enabled") for name, plugin in config.plugins.items())


def on_pre_build(config: MkDocsConfig) -> None:
    """Run what is needed, before MkDocs clears the site folder: a failing build leaves the last site as it was."""
    root = find_root(Path(config.config_file_path or ".").parent)
    if Path(config.site_dir).is_symlink():
        raise PluginError(f"{config.site_dir} is a link, and MkDocs would delete all that it leads to: remove the link")
    try:
        if saved_since(root):  # something will most likely run: imports take longer than all else
            _pool(root).start_early()
        before = sources(root)
        staged = unchanged(root, before) or _staged_anew(root, config, before)
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


def _pool(root: Path) -> "Pool":
    # Imported only here and below: a build in which nothing has changed does without the runner and the renderer.
    from executed.pool import Pool

    _Site.pool = _Site.pool or Pool(root)
    return _Site.pool


def _staged_anew(root: Path, config: MkDocsConfig, before: str) -> Staged:
    from executed.stage import stage

    _Site.ahead = ThreadPoolExecutor(1).submit(_theme_ahead, config)
    remembered = _Site.staged.failures if _Site.serving and _Site.staged else {}
    with no_garbage_collection():
        staged = stage(root, pool=_pool(root), remembered=remembered, before=before)
    if not _Site.serving:  # nothing more will run: the server can go while the pages are made
        threading.Thread(target=_pool(root).close).start()
        gc.freeze()  # as above: the texts of a large book are many objects
    return staged


def _theme_ahead(config: MkDocsConfig) -> Environment:
    """The theme's templates compiled, and what reads Markdown imported: half a second that nobody waits for by then."""
    theme = config.theme.get_env()
    with contextlib.suppress(Exception):  # what is wrong with a theme, MkDocs says when it comes to it
        _shell(theme, config, "..", "ahead.md")
        reader = markdown.Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
        reader.convert("```python\npass\n```")
    return theme


def _shell(theme: Environment, config: MkDocsConfig, base_url: str, source: str = "") -> str:
    """What the theme makes of a page without content; without a `source`, of the page for dead addresses."""
    blank = None
    if source:
        blank = Page("", File.generated(config, source, content=""), config)
        blank.content = ""
    context = get_context(Navigation([], []), Files([]), config, blank, base_url)
    return theme.get_template("main.html").render(context)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    assert _Site.staged is not None
    for file in files:
        if Path(file.abs_src_path or "").is_relative_to(config.docs_dir):
            _check_copied(file)
    for name, svg in _Site.staged.figures.items():
        files.append(
            File.generated(config, f"figures/{name}", content=f'<?xml version="1.0" encoding="utf-8"?>\n{svg}')
        )
    for path, text in _Site.staged.files.items():
        if not path.endswith(".ipynb"):
            files.append(File.generated(config, path, content=text))
    _Site.beside = Beside(_Site.staged, _Site.serving)
    _Site.beside.add_notebooks(files, config)
    use_our_words(files)
    if not config.site_url and (sitemap := files.get_file_from_path("sitemap.xml")):
        files.remove(sitemap)
    return files


def _check_copied(file: File) -> None:
    """MkDocs copies what is no Markdown as it is. None of it may be a page of its own that runs something."""
    path, name = f"docs/{file.src_uri}", file.src_uri.lower()
    if name.endswith(DOCUMENTS):
        _mend(Problem(path, 1, "a browser would open this as a page, and nothing checks it: write Markdown"))
    if name.endswith(".svg"):
        svg = file.content_bytes.decode("utf-8-sig", "replace")
        wrong = policy.refused(svg[found.end() :] if (found := XML.match(svg)) else svg)
        _mend(*(Problem(path, svg.partition(piece)[0].count("\n") + 1, words) for words, piece in wrong))


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    _Site.nav = nav


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    assert _Site.staged is not None
    return _Site.staged.pages.get(page.file.src_uri)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Front matter is text and no HTML. While a writer waits, convert only pages that read otherwise than before."""
    wrong = [name for name in page.meta if name not in FRONT_MATTER]
    known = ", ".join(FRONT_MATTER)
    _mend(*(_place(f"{name}:", f"front matter says {known}, and not {name}", config, page) for name in wrong))
    if _Site.beside.show_notebook(page, config):
        return
    for name in {"title", "description"} & page.meta.keys():
        page.meta[name] = escape(str(page.meta[name]), quote=name == "description")
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
    assert _Site.staged is not None

    def address(path: str, anchor: str) -> str:
        target = files.get_file_from_path(path)
        return f"{'' if target in (None, page.file) else target.url_relative_to(page.file)}#{anchor}"

    content = definitions.linked(content, _Site.staged.links.get(page.file.src_uri, {}), address)
    content = _Site.beside.with_notebook(content, page, config, files)
    # MkDocs looks for anchors on headings and in raw HTML only; ours stand on code.
    page.present_anchor_ids = (page.present_anchor_ids or set()) | set(re.findall(r' id="([^"]+)"', content))
    # Nobody looks for how a result was made: the search would find every package on every page.
    content = content.replace('<details class="made">', '<details class="made" data-search-exclude="true">')
    # The theme makes a CSS selector of the nearest id, for the button that copies: that must not have dots.
    content = ANCHORED.sub(lambda found: f'{found[1]} id="code-{found[2].replace(".", "-")}"', content)
    try:
        return mathematics.typeset(content)
    except ValueError as error:
        _mend(f"docs/{page.file.src_uri}: {error}")
        return content


@event_priority(100)  # first: what other plugins add to the theme goes to the one that is used
def on_env(env: Environment, config: MkDocsConfig, files: Files) -> Environment:
    _Site.theme = _Site.ahead.result() if _Site.ahead else env
    _Site.ahead = None
    _Site.shells.clear()
    _Site.beside.add_plain(files, _Site.nav, config)
    _Site.beside.add_cards(files, config)
    return _Site.theme


def on_template_context(context: TemplateContext, template_name: str, config: MkDocsConfig) -> None:
    _Site.base_url = context["base_url"]


def on_page_context(context: TemplateContext, page: Page, config: MkDocsConfig, nav: Navigation) -> None:
    _Site.base_url = context["base_url"]


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The page for addresses that lead nowhere."""
    return _with_policy(output_content, config) if template_name.endswith(".html") else output_content


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Put the figures in last, so that the search index need not read them."""
    _Site.made[page.file.dest_uri] = page
    number = itertools.count(1)
    html = _with_policy(FIGURE.sub(lambda found: _inlined(found, next(number)), output), config, page)
    return head.completed(html, _Site.beside.facts(page, config))


def _with_policy(html: str, config: MkDocsConfig, page: Page | None = None) -> str:
    """A page as it is published: with nothing in it that could run, and with the policy that says so."""
    shell = _Site.shells.get(_Site.base_url)
    if shell is None:
        shell = _shell(_Site.theme, config, _Site.base_url, page.file.src_uri if page else "")
        _Site.shells[_Site.base_url] = shell
    _mend(*(_place(piece, words, config, page) for words, piece in policy.refused(html, shell)))
    if _in(config, offline.MANIFEST):
        html = offline.with_manifest(html, _Site.base_url)
    return policy.with_policy(finish.finished(html), policy.content_security_policy(shell))


def _place(piece: str, words: str, config: MkDocsConfig, page: Page | None = None) -> Problem:
    """A problem where it is: the page's own chapter if that holds the piece, else another, of which a page has a title.

    Where none does, it came with a result or from the theme, and the page itself has to do.
    """
    chapters = sorted(Path(config.docs_dir).rglob("*.md"))
    chapters.sort(key=lambda file: page is None or str(file) != page.file.abs_src_path)
    for file in chapters:
        before, found, _ = file.read_text("utf-8", "replace").partition(piece)
        if found:
            return Problem(f"docs/{file.relative_to(config.docs_dir).as_posix()}", before.count("\n") + 1, words)
    return Problem(f"docs/{page.file.src_uri}" if page else "mkdocs.yml", 1, words)


def _inlined(found: re.Match[str], number: int) -> str:
    """A figure as part of the page, in the page's colours, with its caption."""
    assert _Site.staged is not None
    svg = _Site.staged.figures.get(found["file"])
    if svg is None:
        return found[0]
    svg = own_ids(finish.with_proportions(svg), f"svg{number}").replace(
        "<svg", f'<svg role="img" aria-label="{found["alt"]}"', 1
    )
    caption = f"<figcaption>{found['caption']}</figcaption>" if found["caption"] else ""
    return f'<figure class="drawn">{svg}{caption}</figure>'


@event_priority(-100)  # last: what others write counts as well
def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    if offline.REGISTRATION in config.extra_javascript:
        offline.publish_worker(site)
    if config.strict and not _Site.serving:
        found = deadlinks.dead(site, config.site_url or "", config.use_directory_urls)
        _mend(*(_place(one.piece, one.words, config, _Site.made.get(one.file)) for one in found))


def on_serve(server: "LiveReloadServer", config: MkDocsConfig, builder: Any) -> "LiveReloadServer":
    from watchdog.observers.polling import PollingObserver

    root = find_root(Path(config.config_file_path or ".").parent)
    # MkDocs looks for saved files twice a second; a writer waits for that each time.
    watched = [path for path in (config.docs_dir, config.config_file_path) if path]
    for path in watched:
        server.unwatch(path)
    server.observer = PollingObserver(timeout=0.1)
    server._inject_js_into_html = _allowed(server._inject_js_into_html)  # type: ignore[method-assign]
    for path in (*watched, str(root / SNIPPETS)):
        server.watch(path)
    return server


def _allowed(inject: Callable[[bytes, int], bytes]) -> Callable[[bytes, int], bytes]:
    """The script that reloads a page while it is written, with its hash in the page's policy: else as published."""

    def inject_allowed(content: bytes, epoch: int) -> bytes:
        html = inject(content, epoch).decode()
        script = html[html.rindex("<script>") + len("<script>") : html.rindex("</script>")]
        return html.replace("script-src 'self'", f"script-src 'self' {policy.script_hash(script)}", 1).encode()

    return inject_allowed

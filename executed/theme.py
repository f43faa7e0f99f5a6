"""The theme without content: what it makes of an empty page, and its templates compiled before they are needed."""

import contextlib
import threading

import markdown
from jinja2 import Environment
from mkdocs.commands.build import get_context
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page


def shell(theme: Environment, config: MkDocsConfig, base_url: str, source: str = "") -> str:
    """What the theme makes of a page without content, or, without a `source`, of the page for dead addresses."""
    blank = None
    if source:
        blank = Page("", File.generated(config, source, content=""), config)
        blank.content = ""
    context = get_context(Navigation([], []), Files([]), config, blank, base_url)
    return theme.get_template("main.html").render(context)


class Ahead:
    """The theme's templates, compiled in a thread while examples run: half a second that nobody waits for then."""

    def __init__(self, config: MkDocsConfig) -> None:
        self.theme = config.theme.get_env()
        self._thread = threading.Thread(target=self._prepare, args=(config,), daemon=True)
        self._thread.start()

    def _prepare(self, config: MkDocsConfig) -> None:
        with contextlib.suppress(Exception):  # what is wrong with a theme, MkDocs says when it comes to it
            shell(self.theme, config, "..", "ahead.md")
            reader = markdown.Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
            reader.convert("```python\npass\n```")

    def ready(self) -> Environment:
        """The theme, once all that is under way has ended."""
        self._thread.join()
        return self.theme

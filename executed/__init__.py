"""The engine behind a book whose every output, figure and number is made by the code printed next to it.

A snippet module needs one name from here, `example`. Everything else is for the tools that build the book.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., object])


@overload
def example(function: Function) -> Function: ...
@overload
def example(
    *,
    timeout: float = ...,
    memory: float = ...,
    threads: int = ...,
    alone: bool = ...,
    varies: bool = ...,
    raises: type[BaseException] | None = ...,
    files: Sequence[str] = ...,
    needs: str | Sequence[str] = ...,
) -> Callable[[Function], Function]: ...
def example(function: Function | None = None, **options: object) -> Function | Callable[[Function], Function]:
    """Mark a function whose printed text, figures and returned values a chapter shows.

    The function comes back unchanged, so tests call it and readers paste it. The options are read
    from the source text and never at run time:

    timeout   seconds it may take (default 120)
    memory    GiB it may allocate (default 4)
    threads   threads torch may use (default 1; more only together with `alone`)
    alone     True: nothing else runs beside it, for a timing
    varies    True: its digits differ from run to run, as a timing's do
    raises    the exception that is its point: shown as output, and a failure if it does not come
    needs     what it needs from outside: "hub:owner/model@revision", "package:name", "gpu"
    files     repository files it reads in a way Python cannot see, such as a C++ library's own reads
    """
    if function is not None:
        return function
    return lambda marked: marked

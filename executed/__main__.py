"""`python -m executed` is `executed`."""

from executed.cli import main

raise SystemExit(main())

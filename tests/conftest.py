"""Settings for all tests."""

import os

from hypothesis import settings

# A pull request is judged by the same cases every time; at home hypothesis goes on looking for new ones.
settings.register_profile("same cases every time", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("same cases every time")

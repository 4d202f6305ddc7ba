"""The version of the extension that is loaded."""

from forerun import _core

__version__: str = _core.version().split()[-1]

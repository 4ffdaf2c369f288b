"""The suites: each module in this directory that defines SUITE."""

import importlib
import pkgutil

from ..suite import Suite


def load() -> dict[str, Suite]:
    """All suites by name, in the order of the report."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        suite = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SUITE", None)
        if suite is not None:
            found.append(suite)
    return {suite.name: suite for suite in sorted(found, key=lambda s: (s.order, s.name))}

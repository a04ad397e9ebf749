"""The one seam: a rule, a kernel table, a renderer, a collector, a subcommand is a module that offers one name."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def names(package: ModuleType) -> list[str]:
    """Modules of `package`, sorted, without importing them; folders in it hold helpers and are no plug-ins."""
    return sorted(module.name for module in iter_modules(package.__path__) if not module.ispkg)


def offers(package: ModuleType, attribute: str) -> dict[str, Any]:
    """`attribute` of every module of `package`, by module name, sorted.

    Raises:
        ImportError: a module cannot be imported; a broken plugin is never silently absent.
        AttributeError: a module does not offer `attribute`.
    """
    return {name: getattr(import_module(f"{package.__name__}.{name}"), attribute) for name in names(package)}

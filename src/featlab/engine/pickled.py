"""Objects as bytes for another process, with code of the user's own by value.

A function of a script, a notebook or a file beside it is not looked up where it arrives: it may not be importable
there, or be another one, since a worker lives longer than an edit.
"""

from __future__ import annotations

import dataclasses
import io
import sys
import sysconfig
import threading
from typing import Any

import cloudpickle
import equinox as eqx

_STANDARD = sysconfig.get_path("stdlib")
_registering = threading.RLock()  # cloudpickle keeps one list for the process; an object may hold bytes of its own


def as_bytes(value: Any) -> bytes:
    """For `pickle.loads` in a process that has the packages that are installed here, and nothing else."""
    with _registering:
        known = cloudpickle.list_registry_pickle_by_value()
        own = [module for module in _of_the_user() if module.__name__ not in known]
        for module in own:
            cloudpickle.register_pickle_by_value(module)
        try:
            into = io.BytesIO()
            _Pickler(into, protocol=5).dump(value)
            return into.getvalue()
        finally:
            for module in own:
                cloudpickle.unregister_pickle_by_value(module)


def _of_the_user() -> list[Any]:
    """The modules that were not installed; those of `__main__` cloudpickle takes by value anyway."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or getattr(module, "__name__", None) != name or name == "__main__":
            continue
        installed = "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)
        if not installed and name.partition(".")[0] != "featlab":
            found.append(module)
    return found


class _Pickler(cloudpickle.Pickler):
    """Cloudpickle makes an empty class and fills it; a class of Equinox wants its fields when it is made."""

    def reducer_override(self, obj) -> Any:
        reduced: Any = super().reducer_override(obj)
        if not (isinstance(obj, type) and issubclass(obj, eqx.Module) and isinstance(reduced, tuple)):
            return reduced
        make, arguments, (state, slots), *rest = reduced
        fields = {field.name: _options(field) for field in dataclasses.fields(obj)}
        state = {name: value for name, value in state.items() if name != "__dataclass_fields__"}
        return _begun, (make, arguments, fields), (state, slots), *rest


def _options(field: dataclasses.Field) -> dict[str, Any]:
    names = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    options = {name: getattr(field, name) for name in names}
    given = {name: value for name, value in options.items() if value is not dataclasses.MISSING}
    return given | {"metadata": dict(field.metadata)}


def _begun(make: Any, arguments: tuple, fields: dict[str, dict[str, Any]]) -> type:
    kind, name, bases, namespace, *rest = arguments
    own = {field: dataclasses.field(**options) for field, options in fields.items()}
    return make(kind, name, bases, namespace | {"__annotations__": dict.fromkeys(own, Any)} | own, *rest)

"""`NamedTuple` for records that are built before the command is spawned.

`typing.NamedTuple` costs the import of typing, re and enum: most of a bare interpreter's start. At run time this
module makes the same classes from `collections.namedtuple`; a type checker sees the real thing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Fields(type):
        """Turn the annotations of a subclass body into the fields of a tuple."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.pop("__annotations__", {})
            defaults = [body.pop(field) for field in fields if field in body]
            plain = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            return type(name, (plain,), {"__slots__": (), **body})

    class NamedTuple(metaclass=_Fields):
        """Base of an immutable record; see the module's docstring."""

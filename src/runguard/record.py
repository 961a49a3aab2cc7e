"""`NamedTuple` for records that are built before the command is spawned.

`typing.NamedTuple` costs the import of typing, re and enum, and each class made by `collections.namedtuple` a tenth of
a millisecond, because it compiles its `__new__`. At run time this module makes tuples with named fields and the same
few methods from what the interpreter has at its start; a type checker sees the real thing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter

    class _Fields(type):
        """Turn the annotations of a class body into the fields of a tuple."""

        def __new__(cls, name, bases, body):
            fields = tuple(body.pop("__annotations__", ()))
            body["_fields"] = fields
            body["_defaults"] = {field: body.pop(field) for field in fields if field in body}
            body["__slots__"] = ()
            for index, field in enumerate(fields):
                body[field] = _tuplegetter(index, field)
            return super().__new__(cls, name, bases, body)

    class NamedTuple(tuple, metaclass=_Fields):
        """Base of an immutable record; see the module's docstring."""

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                values = _complete(cls, values, named)
            return tuple.__new__(cls, values)

        def _replace(self, **named):
            unknown = named.keys() - set(self._fields)
            if unknown:
                raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
            return tuple.__new__(type(self), (named.get(field, self[i]) for i, field in enumerate(self._fields)))

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._asdict().items())})"

        def __getnewargs__(self):
            return tuple(self)

    def _complete(cls, values, named):
        """Return the values of all fields, or raise TypeError as a call with wrong arguments does."""
        found = list(values)
        left = len(named)
        for field in cls._fields[len(values) :]:
            if field in named:
                found.append(named[field])
                left -= 1
            elif field in cls._defaults:
                found.append(cls._defaults[field])
            else:
                raise TypeError(f"{cls.__name__}: the field {field} is missing")
        if left or len(values) > len(cls._fields):
            raise TypeError(f"{cls.__name__}: too many values, or a field that it has not: {sorted(named)}")
        return found

"""Records: tuples with named fields that cost nothing to define."""

import pytest

from runguard.record import NamedTuple


class Point(NamedTuple):
    """A point."""

    x: int
    y: int = 7

    def sum(self) -> int:
        return self.x + self.y


def test_fields_are_given_by_position_name_or_default() -> None:
    assert Point(1, 2) == Point(x=1, y=2) == (1, 2)
    assert Point(1).y == 7
    assert Point(1, y=2).sum() == 3


def test_a_record_is_replaced_never_changed() -> None:
    point = Point(1, 2)
    assert point._replace(y=0) == Point(1, 0)
    with pytest.raises(AttributeError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 3  # type: ignore[attr-defined]


def test_a_record_tells_its_fields() -> None:
    assert Point._fields == ("x", "y")
    assert Point(1, 2)._asdict() == {"x": 1, "y": 2}
    assert repr(Point(1, 2)) == "Point(x=1, y=2)"
    assert Point.__doc__ == "A point."


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})]
)
def test_wrong_fields_are_a_type_error(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_an_unknown_field_cannot_be_replaced() -> None:
    with pytest.raises(TypeError):
        Point(1)._replace(z=3)  # type: ignore[call-arg]


def test_records_match_by_position_and_name() -> None:
    match Point(1, 2):
        case Point(x=1, y=y):
            assert y == 2
    match (1, 2):
        case Point():
            pytest.fail("a plain tuple is no Point")
        case (x, _):
            assert x == 1

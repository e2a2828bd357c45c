"""Named tuples that are quick to define are typing's in all that is seen of them."""

import pickle
import typing

import pytest

from rag_eval import typed


class Point(typed.NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str | None = None

    @property
    def total(self):
        return self.x + self.y

    @classmethod
    def of(cls, text):
        return cls(*map(int, text.split(",")))

    def __str__(self):
        return f"{self.x}/{self.y}"


class Theirs(typing.NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str | None = None


def test_fields_defaults_and_what_is_said_of_them_are_those_of_typing():
    assert (Point._fields, Point._field_defaults, Point.__doc__, Point.__module__, Point.__qualname__) == (
        Theirs._fields,
        Theirs._field_defaults,
        Theirs.__doc__,
        Theirs.__module__,
        "Point",
    )
    assert typing.get_type_hints(Point) == typing.get_type_hints(Theirs)
    assert repr(Point(1)) == repr(Theirs(1)).replace("Theirs", "Point")
    assert Point.__mro__[1:] == (tuple, object)


def test_it_is_a_tuple_with_methods_of_its_own():
    one = Point.of("3,4")
    assert (one, one.total, str(one), one._replace(y=7), one._asdict()) == (
        (3, 4, None),
        7,
        "3/4",
        (3, 7, None),
        {"x": 3, "y": 4, "name": None},
    )
    assert pickle.loads(pickle.dumps(one)) == one
    assert type(pickle.loads(pickle.dumps(one))) is Point


@pytest.mark.parametrize("base", [Point, Theirs])
def test_what_is_not_there_is_said(base):
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        base()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        base(1, z=2)
    with pytest.raises(AttributeError):
        base(1).x = 2

"""The forms of a value: JSON, HTML, a table for the terminal."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hoodie.present.registry import MODULES
from hoodie.present.sheet import Sheet, facts, listing
from hoodie.units import count_text

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")


def fields_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass or of a named tuple by name."""
    return value._asdict() if _is_named_tuple(value) else asdict(value)


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How the values of one class are shown. Whoever adds one registers it by the name of the class in `registry`.

    `json` gives plain values, `title` what stands above the facts of one value: all that a value needs whose facts are
    its JSON. `sheet` says otherwise how one value looks, `listing` how many of them do; `noun` is what one is called.
    """

    json: Callable[[T], Any] = fields_json
    title: Callable[[T], str] | None = None
    sheet: Callable[[T], Sheet] | None = None
    listing: Callable[[Sequence[T]], Sheet] | None = None
    noun: str = "row"


_FIELDS: Final[Form[Any]] = Form()


def as_json(value: Any) -> Any:
    """`value` as JSON can hold it: objects, lists, texts, numbers, null. Of a sequence each member."""
    if value is None or isinstance(value, str | int | float):
        return value
    if _is_many(value):
        return [as_json(part) for part in value]
    form = _form(value)
    if form is None and isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    if form is None:
        raise TypeError(f"{type(value).__name__} has no JSON form: register one in hoodie.present.registry")
    return as_json(form.json(value))


def as_html(value: Any, title: str | None = None) -> str:
    """`value`, or all of a sequence, as an HTML table with a caption. `title` stands for what it says otherwise."""
    from hoodie.present.html import sheet_html  # noqa: PLC0415 - for notebooks only: who prints JSON does without

    return sheet_html(_sheet(value, title))


def as_grid(value: Any, title: str | None = None) -> RenderableType:
    """`value`, or all of a sequence, as a table that `rich` prints."""
    from hoodie.present.grid import sheet_grid  # noqa: PLC0415 - loads rich

    return sheet_grid(_sheet(value, title))


def _sheet(value: Any, title: str | None) -> Sheet:
    made = _values_sheet if _is_many(value) else _value_sheet
    sheet = value if isinstance(value, Sheet) else made(value)
    return sheet if title is None else replace(sheet, title=title)


def _value_sheet(value: Any) -> Sheet:
    form = _form(value) or _FIELDS
    if form.sheet is not None:
        return form.sheet(value)
    return facts(_class_words(value) if form.title is None else form.title(value), as_json(value))


def _values_sheet(values: Sequence[Any]) -> Sheet:
    form = (_form(values[0]) if values else None) or _FIELDS
    if form.listing is not None:
        return form.listing(values)
    return listing(count_text(len(values), form.noun), as_json(values))


def _form(value: Any) -> Form[Any] | None:
    """The registered form of the class; that of its fields for another dataclass or named tuple, None for anything
    else.
    """
    name = type(value).__name__
    if name not in MODULES:
        return _FIELDS if is_dataclass(value) or _is_named_tuple(value) else None
    form: Form[Any] = importlib.import_module(f"hoodie.present.{MODULES[name]}").FORMS[name]
    return form


def _is_many(value: Any) -> bool:
    return isinstance(value, list | tuple) and not _is_named_tuple(value)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _class_words(value: Any) -> str:
    """`CleanResult` as "clean result"."""
    name = type(value).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()

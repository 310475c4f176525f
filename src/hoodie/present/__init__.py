"""What people look at: a value as plain JSON, as HTML for notebooks, as a table for the terminal.

1. Values of the core know nothing of this. How one is shown stands in the module of its noun (`results`, `health`),
   found by the name of its class in `registry`; a dataclass that is not registered is shown by its fields.
2. A noun says its JSON form and its `Sheet`: title, columns, rows, notes. HTML and terminal tables are made from that,
   so they never differ in what they say.
3. What is shown may come from strangers: HTML is escaped, and what steers a terminal is shown as an escape.
4. Asking for JSON loads neither pyarrow nor rich. rich is loaded by `as_grid`. Pages for a browser are in `page`.
"""

from hoodie.present.forms import as_grid, as_html, as_json

__all__ = ["as_grid", "as_html", "as_json"]

"""Pages about tables for people with a browser: one table, its partitions, all tables of a service.

1. A page is made of values only and stands alone: style, script and drawings are inside it, nothing is loaded from
   anywhere, and its policy forbids the browser to. The service sends it, `hoodie report` stores it.
2. Everything that is shown goes through `markup`, which escapes what is no markup of ours, and what steers text.
3. Without the script all of it can be read; the script zooms the timeline and copies remedies.
4. No page has more than a bounded number of rows, whatever the size of the table.
"""

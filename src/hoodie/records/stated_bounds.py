"""Which parts of some rows an Arrow expression can be true in, by what is stated of each part.

Arrow cannot be asked what an expression says, but it can simplify one by what is known to be true: that is how its own
datasets leave out files. For each part the bounds of its columns are stated, and Arrow tells whether anything is left.

Nothing may be stated of floating point columns: NaN is outside of every range.

Loads `pyarrow.dataset`, and with it pandas: a second of CPU.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs


def stated_bounds(column: str, low: pa.Scalar, high: pa.Scalar, *, has_nulls: bool) -> pc.Expression:
    """All values of the column lie between these bounds, or are null."""
    name = pc.field(column)
    above, below = name >= low, name <= high
    if has_nulls:  # said of each bound: Arrow understands it in this form only
        above, below = above | name.is_null(), below | name.is_null()
    return above & below


def parts_that_may_match(
    expression: pc.Expression, columns: pa.Schema, parts: Sequence[Sequence[pc.Expression]]
) -> frozenset[int]:
    """The numbers of those parts in which the expression can be true. Each part is what is stated of it; `columns` has
    all that the expression looks at. These are all parts where Arrow cannot simplify the expression by the bounds: it
    compares the values of `isin` with them as they are, rows with values in the column's type.
    """
    form, nowhere = ds.ParquetFileFormat(), pa_fs.LocalFileSystem()
    fragments = [
        form.make_fragment(
            str(number), nowhere, partition_expression=functools.reduce(operator.and_, stated) if stated else None
        )
        for number, stated in enumerate(parts)
    ]
    dataset = ds.FileSystemDataset(fragments, columns, form, nowhere)
    try:
        return frozenset(int(fragment.path) for fragment in dataset.get_fragments(filter=expression))
    except pa.ArrowException:
        return frozenset(range(len(parts)))

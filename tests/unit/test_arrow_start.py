"""pyarrow without pandas: it stays out, and comes back whole for whoever imports it."""

from __future__ import annotations

import subprocess
import sys

START = "import sys, pyarrow as pa; from hoodie.arrow_start import start_without_pandas; start_without_pandas();"


def _printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_arrays_scalars_and_datasets_do_not_load_pandas() -> None:
    work = "import pyarrow.dataset; pa.array([1, 2]); pa.scalar('a'); print('pandas' in sys.modules)"
    assert _printed(START + work) == "False"


def test_pandas_imported_later_is_known_to_pyarrow() -> None:
    work = """
start_without_pandas()
import importlib.util
assert importlib.util.find_spec('pandas').name == 'pandas'  # polars asks without loading it
import pandas as pd, importlib.resources
print(pa.array(pd.Series([1.5, None])).null_count, pa.table({'a': [1]}).to_pandas().a.sum())
print(len(pa.Table.from_pandas(pd.DataFrame({'a': [1, 2]}))), pd.__spec__.loader.__class__.__name__)
print(importlib.resources.files('pandas').name, [type(one).__name__ for one in sys.meta_path if 'Pandas' in str(one)])
"""
    assert _printed(START + work).splitlines() == ["1 1", "2 SourceFileLoader", "pandas []"]


def test_pandas_that_is_loaded_stays_in_use() -> None:
    work = "import pandas as pd;" + START + "print(pa.array(pd.Series([1.5, None])).null_count)"
    assert _printed(work) == "1"

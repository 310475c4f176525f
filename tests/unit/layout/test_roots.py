"""Which places a table may keep files in: what its properties say is input, the caller decides."""

import pytest

from hoodie.errors import Invalid
from hoodie.layout.roots import ensure_roots

TABLE = "s3://meta/tables/orders"


@pytest.mark.parametrize(
    ("root", "allowed"),
    [
        ("s3://meta/data", ()),
        ("s3a://meta/data", ()),
        ("s3://data", ("s3://data",)),
        ("s3n://data/a/b", ("s3a://data/a/",)),
        ("gs://data/x", ("gs://data",)),
        ("abfss://c@acc.dfs.core.windows.net/x", ("abfss://c@acc.dfs.core.windows.net",)),
    ],
)
def test_allowed_root_is_taken(root, allowed):
    ensure_roots([root], TABLE, allowed)


@pytest.mark.parametrize(
    ("root", "allowed"),
    [
        ("s3://other", ()),
        ("s3://metadata", ()),
        ("gs://meta/data", ()),
        ("s3://data/ab", ("s3://data/a",)),
        ("s3://data", ("s3://data/a",)),
        ("file:///tmp/x", ("s3://data",)),
        ("/tmp/x", ()),
    ],
)
def test_root_that_is_not_allowed_is_refused(root, allowed):
    with pytest.raises(Invalid, match=r"not allowed.*hoodie\.storage\.allowed\.roots"):
        ensure_roots([root], TABLE, allowed)


@pytest.mark.parametrize(
    "root",
    [
        "s3://data/../x",
        "s3://data/a//b",
        "s3://data/./x",
        "s3://user:word@data",
        "s3://data/x?y",
        "s3://data/x#y",
        "s3://data/*",
        "s3://",
        "file:///",
        "/",
        "//",
        "relative/x",
        "/data/../etc",
        "s3://data/a\nb",
    ],
)
def test_root_that_is_no_plain_url_is_refused_even_if_allowed(root):
    with pytest.raises(Invalid, match="cannot be a storage path"):
        ensure_roots([root], TABLE, ["s3://data", "/data"])


@pytest.mark.parametrize(
    "roots", [[TABLE], [f"{TABLE}/data"], ["s3://meta/a", "s3://meta/a/b"], ["s3a://meta/a/b", "s3://meta/a"]]
)
def test_root_inside_the_table_or_another_root_is_refused(roots):
    with pytest.raises(Invalid, match="lies inside"):
        ensure_roots(roots, TABLE, [])


def test_local_roots_are_never_allowed_by_default_and_compared_by_where_links_lead(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to("/")
    with pytest.raises(Invalid, match="not allowed"):
        ensure_roots([f"{tmp_path}/data"], f"{tmp_path}/table", [])
    ensure_roots([f"file://{tmp_path}/data/a"], f"{tmp_path}/table", [f"{tmp_path}/data"])
    with pytest.raises(Invalid, match="not allowed"):
        ensure_roots([f"{tmp_path}/data/link/etc"], f"{tmp_path}/table", [f"{tmp_path}/data"])

"""Options of a Spark session, and what a session asks of parquet."""

from __future__ import annotations

import pytest

from hoodie.errors import Unsupported
from hoodie.given_options import resolve_given
from hoodie.spark.session_options import with_session
from hoodie.testing.session_stub import SessionWith

SETTINGS = {
    "spark.app.name": "-> a -> b",
    "spark.hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "9",
    "spark.hoodie.keep.max.commits": "8",
    "spark.hadoop.fs.s3a.access.key": "k",
    "hoodie.datasource.write.precombine.field": "session",
}
CRYPTO = {"parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"}


def test_a_session_gives_options_beneath_those_of_the_call() -> None:
    assert with_session(SessionWith(SETTINGS), {"hoodie.table.ordering.fields": "call"}) == {
        "hoodie.table.ordering.fields": "call",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "9",
    }


def test_a_session_that_encrypts_parquet_is_refused_by_writes_whose_files_would_be_plain() -> None:
    session = SessionWith({}, {**CRYPTO, "parquet.block.size": "1"})
    assert with_session(session, {}) == {}
    given = with_session(session, {}, writes=True)
    assert given == CRYPTO
    with pytest.raises(Unsupported, match=r"parquet\.crypto\.factory\.class"):
        resolve_given(given)

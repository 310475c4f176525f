"""Our errors as text through the JVM, and back."""

from __future__ import annotations

import traceback

import pytest
from py4j.protocol import Py4JError

from hoodie.errors import Conflict, Corrupt, HudiError, Invalid
from hoodie.spark.failures import ErrorInTransit, from_text, raise_through_jvm, through_jvm, to_text, translated
from hoodie.transaction import EarlyConflict


@pytest.mark.parametrize(
    "error",
    [
        Corrupt("Footer of a/ü b.parquet is torn", remedy="Restore it", path="a/ü b.parquet"),
        Conflict("Somebody else writes"),
        HudiError("line one\nline two"),
        EarlyConflict("Somebody else writes", instant="2", other="1"),
    ],
)
def test_an_error_survives_a_java_stack_trace(error: HudiError) -> None:
    text = (
        f"org.apache.spark.SparkException: Job aborted\n\tat x.y.z(A.scala:1)\nCaused by: {to_text(error)} more\n\tat b"
    )
    found = from_text(text)
    assert type(found) is type(error)
    assert found is not None
    assert (found.cause, found.remedy, found.facts) == (error.cause, error.remedy, error.facts)


def test_facts_become_text() -> None:
    found = from_text(to_text(Corrupt("x", offset=7)))
    assert found is not None
    assert found.facts == {"offset": "7"}


@pytest.mark.parametrize("text", ["", "hoodie-error[", "hoodie-error[!!!]", "hoodie-error[AAAA]", "hoodie-error[WzFd]"])
def test_text_that_only_looks_like_an_error_is_left_alone(text: str) -> None:
    assert from_text(text) is None


def test_a_name_that_is_no_error_of_ours_is_left_alone() -> None:
    token = to_text(Invalid("x")).replace("hoodie-error[", "").rstrip("]")
    import base64  # noqa: PLC0415
    import json  # noqa: PLC0415

    record = json.loads(base64.urlsafe_b64decode(token))
    record[0] = "_rebuild"
    forged = base64.urlsafe_b64encode(json.dumps(record).encode()).decode()
    assert from_text(f"hoodie-error[{forged}]") is None


def test_what_is_raised_reads_like_the_error_for_people() -> None:
    with pytest.raises(ErrorInTransit, match=r"Keys are missing\. Name them") as caught:
        raise_through_jvm(Invalid("Keys are missing", remedy="Name them"))
    assert isinstance(caught.value.__cause__, Invalid)


def test_an_error_of_ours_leaves_for_the_jvm_and_others_stay() -> None:
    @through_jvm()
    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(ErrorInTransit) as caught:
        fail(Invalid("Keys are missing"))
    assert isinstance(from_text(str(caught.value)), Invalid)
    with pytest.raises(KeyError):
        fail(KeyError("x"))


@pytest.mark.parametrize("head", ["", "Traceback (most recent call last):\n  File x\n"])
def test_a_long_java_text_becomes_one_short_message(head: str) -> None:
    text = f"{head}ValueError: boom {'y' * 30_000}\n" + "\tat org.apache.spark.X(Y.scala:1)\n" * 300
    with pytest.raises(HudiError) as caught, translated("intake"):
        raise Py4JError(text)
    assert str(caught.value).startswith("Spark failed in step 'intake': ValueError: boom yyy")
    shown = "".join(traceback.format_exception(caught.value))
    assert len(str(caught.value)) < 500
    assert "org.apache.spark" not in shown
    assert "y" * 500 not in shown

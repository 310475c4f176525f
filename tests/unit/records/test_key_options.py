import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.records import KeyKind, key_options, kind_of_type

TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy",
}


@pytest.mark.parametrize(
    ("records", "partitions", "kind"),
    [
        ("id", "", KeyKind.NON_PARTITION),
        ("id,s", "", KeyKind.NON_PARTITION),
        ("id", "p", KeyKind.SIMPLE),
        ("", "p", KeyKind.SIMPLE),
        ("id,s", "p", KeyKind.COMPLEX),
        ("id", "p,q", KeyKind.COMPLEX),
        ("id", "p:simple", KeyKind.CUSTOM),
    ],
)
def test_the_kind_follows_from_the_fields_when_none_is_named(records: str, partitions: str, kind: KeyKind) -> None:
    assert key_options(record_fields=records, partition_fields=partitions).kind is kind


@pytest.mark.parametrize("kind", list(KeyKind))
def test_avro_types_are_their_twins(kind: KeyKind) -> None:
    assert kind_of_type(kind.value) is kind
    assert kind_of_type(f"{kind.value.lower()}_avro") is kind


def test_a_type_nobody_has_is_not_supported() -> None:
    with pytest.raises(Unsupported, match="USER_PROVIDED"):
        key_options("USER_PROVIDED", record_fields="id")


def test_automatic_keys_take_the_kind_of_their_partitions() -> None:
    assert key_options("AUTO_RECORD", partition_fields="p").kind is KeyKind.SIMPLE
    assert key_options("AUTO_RECORD_AVRO").kind is KeyKind.NON_PARTITION


def test_names_are_trimmed_and_types_come_with_them_or_beside_them() -> None:
    inside = key_options(record_fields=" id , s", partition_fields="p:SIMPLE, t:timestamp", timestamp_options=TIMES)
    beside = key_options(
        "CUSTOM",
        record_fields=("id", "s"),
        partition_fields=("p", "t"),
        partition_types=("SIMPLE", "TIMESTAMP"),
        timestamp_options=TIMES,
    )
    assert inside == beside
    assert inside.partition_fields == ("p", "t")
    assert inside.timestamp_fields == {"t"}


def test_bare_custom_fields_are_simple() -> None:
    options = key_options("CUSTOM", record_fields="id", partition_fields="p,q", partition_types=("", ""))
    assert not options.is_timestamp("p")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "SIMPLE", "record_fields": "a,b", "partition_fields": "p"}, "one record key field.*COMPLEX"),
        ({"kind": "SIMPLE", "record_fields": "a", "partition_fields": "p,q"}, "one partition field"),
        ({"kind": "SIMPLE", "record_fields": "a"}, "one partition field.*NON_PARTITION"),
        ({"record_fields": "a,a"}, "record key fields name a more than once"),
        ({"record_fields": "a,b", "partition_fields": "p,q,p"}, "partition fields name p more than once"),
        ({"record_fields": "a", "partition_fields": "p:date"}, "has the type 'date'"),
        ({"kind": "TIMESTAMP", "record_fields": "a", "partition_fields": "p"}, "needs hoodie.keygen.timebased"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        key_options(**arguments)

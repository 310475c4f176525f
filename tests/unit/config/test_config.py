"""Options become a checked `Config`, or an error that says what to do."""

from __future__ import annotations

import logging
import pickle
import re
from typing import Any

import pytest

from hoodie.config import Config, ConfigKey, all_keys, resolve
from hoodie.errors import Invalid, Unsupported
from hoodie.storage import object_config

ORDERING = "hoodie.table.ordering.fields"
PRECOMBINE = "hoodie.datasource.write.precombine.field"
OPERATIONS_OF_HUDI = (
    "insert_prepped",
    "upsert_prepped",
    "bulk_insert_prepped",
    "delete_prepped",
    "bootstrap",
    "cluster",
    "compact",
    "alter_schema",
)


def test_values_keep_their_canonical_key_and_read_as_typed() -> None:
    config = resolve(
        {
            "hoodie.table.name": "trips",
            PRECOMBINE: "ts, seq",
            "hoodie.parquet.max.file.size": 1_000_000,
            "hoodie.index.bloom.fpp": "0.01",
            "hoodie.combine.before.insert": True,
            "hoodie.cleaner.policy.failed.writes": "eager",
        }
    )
    assert config.text("hoodie.table.name") == "trips"
    assert config.list(ORDERING) == ("ts", "seq")
    assert config.list(PRECOMBINE) == ("ts", "seq")
    assert config.integer("hoodie.parquet.max.file.size") == 1_000_000
    assert config.number("hoodie.index.bloom.fpp") == 0.01
    assert config.flag("hoodie.combine.before.insert") is True
    assert config.explicit["hoodie.clean.failed.writes.policy"] == "EAGER"


def test_what_is_not_given_has_its_default() -> None:
    config = resolve({})
    assert config.text("hoodie.parquet.compression.codec") == "zstd"
    assert config.text("hoodie.index.type") == "SIMPLE"
    assert config.integer("hoodie.engine.local.max.bytes") == 256 * 1024 * 1024
    assert config.flag("hoodie.metadata.enable") is True
    assert config.optional("hoodie.table.name") is None
    assert config.text("hoodie.table.name") == ""
    assert config.list(ORDERING) == ()
    assert not config.is_set("hoodie.index.type")


def test_is_set_sees_every_spelling() -> None:
    config = resolve({PRECOMBINE: "ts"})
    assert config.is_set(ORDERING)
    assert config.is_set(PRECOMBINE)
    assert config.is_set("hoodie.table.precombine.field")


def test_none_and_empty_numbers_mean_not_given() -> None:
    config = resolve({"hoodie.table.name": None, "hoodie.parquet.page.size": " "})
    assert not config.explicit


def test_lists_of_python_become_comma_lists() -> None:
    assert resolve({"hoodie.datasource.write.recordkey.field": ["a", "b"]}).list(
        "hoodie.datasource.write.recordkey.field"
    ) == ("a", "b")


@pytest.mark.parametrize(("given", "kept"), [("SIX", "6"), (8, "8"), ("nine", "9")])
def test_table_versions_are_understood_as_word_and_number(given: object, kept: str) -> None:
    assert resolve({"hoodie.write.table.version": given}).text("hoodie.write.table.version") == kept


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("hoodie.combine.before.insert", "yes", "true or false"),
        ("hoodie.parquet.max.file.size", "120MB", "a whole number >0"),
        ("hoodie.parquet.max.file.size", 0, "a whole number >0"),
        ("hoodie.bucket.index.num.buckets", 10**8 + 1, "a whole number >0 and <=100000000"),
        ("hoodie.index.bloom.fpp", 1.5, "a number >0 and <1"),
        ("hoodie.index.type", "BLOOMY", "SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM"),
        ("hoodie.datasource.write.operation", "merge", "upsert, insert"),
        ("hoodie.write.table.version", 7, "9, 8, 6"),
        ("hoodie.clustering.inline", "maybe", "true or false"),
    ],
)
def test_a_wrong_value_names_key_value_and_what_is_accepted(key: str, value: Any, expected: str) -> None:
    with pytest.raises(Invalid) as caught:
        resolve({key: value})
    assert key in str(caught.value)
    assert repr(str(value)) in str(caught.value)
    assert expected in str(caught.value)
    assert caught.value.facts["key"] == key


@pytest.mark.parametrize(
    "entry",
    [one for one in all_keys() if one.type == "integer" and one.key.startswith("hoodie.write.lock.") and not one.later],
    ids=lambda one: one.key,
)
def test_numbers_of_locks_are_never_negative_and_zero_only_where_it_means_something(entry: ConfigKey) -> None:
    means_something = {"wait", "retries", "expire"}
    for value in (-5, 0):
        if value == 0 and any(word in entry.key for word in means_something):
            assert resolve({entry.key: value}).integer(entry.key) == 0
            continue
        with pytest.raises(Invalid, match=f"{re.escape(entry.key)} cannot be '{value}'.*Give a whole number >"):
            resolve({entry.key: value})


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(Invalid, match=r"hoodie\.datasource\.write\.recordkey\.field\?"):
        resolve({"hoodie.datasource.write.recordkey.fild": "id"})


def test_a_misspelt_prefix_is_no_option_of_somebody_else() -> None:
    with pytest.raises(Invalid, match=r"hoodie\.table\.name"):
        resolve({"hodie.table.name": "t"})


def test_other_options_pass_untouched() -> None:
    given = {"path": "/tmp/t", "fs.s3a.endpoint": "http://x", "mergeSchema": "true", "compression": "snappy"}
    config = resolve(given)
    assert config.passed == given
    assert not config.explicit


def test_two_spellings_with_one_value_agree() -> None:
    assert resolve({PRECOMBINE: "ts", ORDERING: " ts"}).list(ORDERING) == ("ts",)


def test_two_spellings_with_different_values_contradict() -> None:
    with pytest.raises(Invalid) as caught:
        resolve({PRECOMBINE: "ts", ORDERING: "seq"})
    assert PRECOMBINE in str(caught.value)
    assert ORDERING in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.hive_sync.enable", "true"),
        ("hoodie.datasource.meta.sync.enable", "true"),
        ("hoodie.index.type", "FLINK_STATE"),
        ("hoodie.bucket.index.partition.expressions", "2026.*,16"),
        ("hoodie.clustering.preserve.commit.metadata", "false"),
        ("hoodie.write.lock.conflict.resolution.strategy", "com.example.MyStrategy"),
        ("hoodie.write.concurrency.early.conflict.detection.strategy", "com.example.Mine"),
        ("hoodie.datasource.write.payload.class", "com.example.MyPayload"),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"),
        ("hoodie.datasource.write.keygenerator.class", "com.example.MyKeys"),
        ("hoodie.bulkinsert.user.defined.partitioner.class", "com.example.MyPartitioner"),
        *(("hoodie.datasource.write.operation", name) for name in OPERATIONS_OF_HUDI),
        ("hoodie.precommit.validators", "com.example.Check"),
        ("hoodie.prewrite.validators", "com.example.Check"),
        ("hoodie.write.commit.callback.on", "true"),
        ("hoodie.errortable.enable", "true"),
        ("hoodie.bootstrap.base.path", "/lake/parquet"),
        ("hoodie.schema.on.read.enable", "true"),
        ("hoodie.record.merge.property.anything", "x"),
        ("hoodie.write.record.merge.mode", "CUSTOM"),
        ("hoodie.base.file.format", "ORC"),
        ("hoodie.base.file.format", "HFILE"),
        ("hoodie.base.file.format", "LANCE"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
        ("hoodie.table.format", "iceberg"),
    ],
)
def test_a_value_that_asks_for_what_is_not_there_yet_is_refused(key: str, value: object) -> None:
    with pytest.raises(Unsupported) as caught:
        resolve({key: value})
    assert f"{key}=" in caught.value.cause
    assert f"eave {key} out" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.read.paths", "/lake/a,/lake/b"),
        ("hoodie.datasource.read.extract.partition.values.from.path", "true"),
        ("hoodie.datasource.read.partition.value.extractor.enabled", "true"),
    ],
)
def test_a_read_that_asks_for_what_is_not_there_yet_is_refused(key: str, value: str) -> None:
    with pytest.raises(Unsupported) as caught:
        resolve({key: value}, purpose="read")
    assert f"{key}={value}" in caught.value.cause
    assert f"eave {key} out" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.hive_sync.enable": "false", "hoodie.datasource.hive_sync.table": "t"},
        {"hoodie.metadata.enable": "false", "hoodie.metadata.index.column.stats.enable": "true"},
        {"hoodie.clustering.async.enabled": "false", "hoodie.clustering.async.max.commits": 4},
        {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"},
        {"hoodie.index.bucket.engine": "SIMPLE", "hoodie.bucket.index.num.buckets": 8},
        {"hoodie.precommit.validators": ""},
        {"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.write.lock.dynamodb.region": "eu-west-1"},
        {"hoodie.table.services.enabled": "true"},
    ],
)
def test_off_values_and_details_of_what_is_off_are_accepted(options: dict[str, object]) -> None:
    assert resolve(options).explicit.keys() >= options.keys() - {"hoodie.precommit.validators"}


def test_all_refused_options_are_named_at_once() -> None:
    with pytest.raises(Unsupported) as caught:
        resolve({"hoodie.index.type": "FLINK_STATE", "hoodie.clustering.preserve.commit.metadata": "false"})
    assert "hoodie.index.type=FLINK_STATE" in caught.value.cause
    assert "hoodie.clustering.preserve.commit.metadata=false" in caught.value.cause


def test_reading_ignores_what_only_steers_writes() -> None:
    resolve({"hoodie.metadata.enable": "true", "hoodie.index.type": "RECORD_INDEX"}, purpose="read")
    found = resolve({"hoodie.datasource.query.incremental.format": "CDC"}, purpose="read")
    assert found.text("hoodie.datasource.query.incremental.format") == "cdc"


def test_settings_of_the_jvm_are_one_info_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="hoodie"):
        resolve({"hoodie.upsert.shuffle.parallelism": 2, "hoodie.embed.timeline.server.gzip": "true"})
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "hoodie.upsert.shuffle.parallelism, hoodie.embed.timeline.server.gzip" in line.message


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.bloom.index.bucketized.checking",
        "hoodie.consistency.check.enabled",
        "hoodie.clean.async.enabled",
        "hoodie.filesystem.operation.retry.enable",
        "hoodie.table.services.incremental.enabled",
    ],
)
def test_what_is_without_effect_is_said(key: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="hoodie"):
        assert resolve({key: "true"}).explicit == {key: "true"}
    (line,) = caplog.records
    assert line.message == f"accepted without effect here: {key}"


def test_defaults_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="hoodie"):
        resolve({"hoodie.table.name": "t", "hoodie.keep.min.commits": 20})
    assert not caplog.records


def test_options_with_the_commit_metadata_prefix_are_kept_for_the_commit() -> None:
    prefix = "hoodie.datasource.write.commitmeta.key.prefix"
    assert resolve({"_batch": 7}).commit_metadata() == {"_batch": "7"}
    config = resolve({prefix: "hoodie.ck.", "hoodie.ck.offset": "12", "_other": "x"})
    assert config.commit_metadata() == {"hoodie.ck.offset": "12"}


@pytest.mark.parametrize(
    "secret",
    [
        {"fs.s3a.secret.key": "topsecret"},
        {"fs.s3a.endpoint": "http://me:topsecret@store"},
        {"fs.special": "topsecret", "hoodie.sensitive.config.keys": "special"},
    ],
    ids=str,
)
def test_no_secret_goes_into_the_commit_by_its_prefix(secret: dict[str, str]) -> None:
    config = resolve({"hoodie.datasource.write.commitmeta.key.prefix": "fs.", "fs.batch": "7", **secret})
    with pytest.raises(Invalid, match=f"would store the secret {next(iter(secret))} in the commit") as raised:
        config.commit_metadata()
    assert "topsecret" not in str(raised.value)


def test_secrets_are_not_printed() -> None:
    config = resolve({"fs.s3a.secret.key": "topsecret", "hoodie.datasource.hive_sync.password": "topsecret"})
    assert "topsecret" not in repr(config)
    assert config.passed["fs.s3a.secret.key"] == "topsecret"


def test_a_number_without_value_and_default_says_so() -> None:
    with pytest.raises(Invalid, match="has no value"):
        resolve({}).integer("hoodie.write.lock.zookeeper.port")


def test_a_config_is_picklable() -> None:
    config = resolve({"hoodie.table.name": "t", "path": "/x"})
    assert pickle.loads(pickle.dumps(config)) == config
    assert Config() == resolve({})


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("as.of.instnat", "as.of.instant"),
        ("timestampasoff", "timestampAsOf"),
        ("primaryKey", "hoodie.datasource.write.recordkey.field"),
        ("primary_key", "hoodie.datasource.write.recordkey.field"),
        ("type", "hoodie.datasource.write.table.type"),
        ("recordkey.field", "hoodie.datasource.write.recordkey.field"),
        ("datasource.write.operation", "hoodie.datasource.write.operation"),
        ("table.name", "hoodie.table.name"),
        ("query.type", "hoodie.datasource.query.type"),
        ("replaceWhere", "hoodie.datasource.write.operation"),
        ("startingVersion", "hoodie.datasource.read.begin.instanttime"),
    ],
)
def test_a_name_without_prefix_that_means_a_setting_is_refused_with_its_key(name: str, key: str) -> None:
    with pytest.raises(Invalid, match=f"Unknown option {re.escape(name)}. Did you mean {re.escape(key)}\\?") as caught:
        resolve({name: "x"})
    assert caught.value.facts["nearest"] == key


@pytest.mark.parametrize("name", ["timestampAsOf", "versionasof"])
def test_names_that_others_have_for_time_travel_are_the_same(name: str) -> None:
    assert resolve({name: "2024-01-01"}, purpose="read").text("as.of.instant") == "2024-01-01"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("fs.s3a.endpiont", "fs.s3a.endpoint"),
        ("spark.hadoop.fs.s3a.acces.key", "fs.s3a.access.key"),
        ("fs.s3a.bucket.my.data.secretkey", "fs.s3a.secret.key"),
        ("fs.s3a.path.style.acess", "fs.s3a.path.style.access"),
    ],
)
def test_a_misspelt_name_of_s3_is_refused_with_the_one_that_was_meant(name: str, near: str) -> None:
    for purpose in ("write", "read"):
        with pytest.raises(Invalid, match=f"Unknown option {re.escape(name)}. Did you mean {re.escape(near)}"):
            resolve({name: "x"}, purpose=purpose)


def test_names_of_s3_are_acted_on_or_without_effect_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    used = {"fs.s3a.access.key": "k", "fs.s3a.bucket.my.data.endpoint": "http://x", "spark.hadoop.fs.s3a.endpoint": "y"}
    idle = {"fs.s3a.threads.max": "7", "fs.s3a.bucket.probe": "0", "fs.s3a.bucket.b.committer.name": "magic"}
    with caplog.at_level("INFO", logger="hoodie"):
        assert resolve({**used, **idle}).passed == used
    assert all(name in caplog.text for name in idle)
    for name in ("fs.s3a.proxy.host", "fs.s3a.bucket.my.data.proxy.password", "fs.s3a.assumed.role.policy"):
        with pytest.raises(Unsupported, match=re.escape(name)) as caught:
            resolve({name: "topsecret"}, purpose="read")
        assert ("topsecret" in str(caught.value)) == ("password" not in name)


@pytest.mark.parametrize("bucket", ["lake.input.acme", "acme.fast.lake", "eu.connection.logs", "my.bucket.metrics"])
def test_parts_of_a_buckets_name_are_no_options(bucket: str) -> None:
    used = {f"fs.s3a.bucket.{bucket}.{name}": "x" for name in ("endpoint", "secret.key", "encryption.algorithm")}
    assert resolve(used).passed == used
    with pytest.raises(Unsupported):
        resolve({f"fs.s3a.bucket.{bucket}.proxy.host": "x"})


def test_what_storage_understands_of_s3_is_said_to_be() -> None:
    said = {entry.key for entry in all_keys() if entry.is_for_storage}
    aliases = {name for entry in all_keys() if entry.is_for_storage for name in entry.aliases}
    assert {f"fs.s3a.{name}" for name in object_config._S3A} <= said | aliases


def test_options_of_stores_are_nobodys_misspelling() -> None:
    names = [name for names in object_config._STORE_OPTIONS.values() for name in names]
    names += [*object_config._CLIENT_OPTIONS, *object_config._S3A, "max_retries", "retry_timeout", "mergeSchema"]
    names += ["aws_region", "fs.s3a.endpoint", "spark.sql.shuffle.partitions", "header", "my.option"]
    assert resolve(dict.fromkeys(names, "x")).passed == dict.fromkeys(names, "x")

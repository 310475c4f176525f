"""Secrets are masked wherever options are printed."""

from __future__ import annotations

import pytest

from hoodie.config import masked, resolve, shown
from hoodie.errors import Invalid


@pytest.mark.parametrize(
    "name",
    [
        "fs.s3a.secret.key",
        "fs.s3a.access.key",
        "aws_secret_access_key",
        "aws_session_token",
        "fs.azure.account.key.acme.dfs.core.windows.net",
        "azure_storage_sas_key",
        "google_service_account_key",
        "hoodie.datasource.hive_sync.password",
        "hoodie.metrics.datadog.api.key",
        "hoodie.write.commit.callback.http.custom.headers",
        "ssl.truststore.location",
        "kafka.sasl.jaas.config",
    ],
)
def test_credentials_are_masked_by_name(name: str) -> None:
    assert masked({name: "topsecret"}) == {name: "***"}


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.table.name",
        "hoodie.datasource.write.recordkey.field",
        "hoodie.write.lock.zookeeper.lock_key",
        "hoodie.write.lock.dynamodb.partition_key",
        "fs.s3a.endpoint",
        "path",
    ],
)
def test_other_values_are_shown(name: str) -> None:
    assert masked({name: "value"}) == {name: "value"}


def test_names_can_be_added() -> None:
    options = {"hoodie.sensitive.config.keys": "owner, region", "x.owner": "me", "auth.kind": "basic"}
    assert masked(options) == {
        "hoodie.sensitive.config.keys": "owner, region",
        "x.owner": "***",
        "auth.kind": "***",
    }


def test_passwords_in_urls_are_masked() -> None:
    assert shown("path", "https://me:topsecret@host/table") == "https://***@host/table"
    assert (
        shown("url", "jdbc:hive2://h:1/db;password=topsecret;ssl=true") == "jdbc:hive2://h:1/db;password=***;ssl=true"
    )


def test_switches_stay_readable() -> None:
    assert masked({"hoodie.metrics.datadog.api.key.skip.validation": True}) == {
        "hoodie.metrics.datadog.api.key.skip.validation": "True"
    }


def test_error_messages_hold_no_secret() -> None:
    with pytest.raises(Invalid) as caught:
        resolve({"hoodie.metrics.datadog.api.key": "topsecret", "hoodie.table.nmae": "topsecret"})
    assert "topsecret" not in str(caught.value)

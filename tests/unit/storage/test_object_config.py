"""URLs and options of object stores, in obstore's and Hadoop's words."""

import pytest

from hoodie.errors import Invalid
from hoodie.storage import open_storage
from hoodie.storage.object_config import masked, open_store, parse_location, secrets_of, store_options


@pytest.mark.parametrize(
    ("given", "uri", "scheme", "bucket", "prefix"),
    [
        ("s3://b/p/q", "s3://b/p/q", "s3", "b", "p/q"),
        ("s3a://b/p/", "s3a://b/p", "s3", "b", "p"),
        ("s3n://b", "s3n://b", "s3", "b", ""),
        ("s3://b/", "s3://b", "s3", "b", ""),
        ("gs://b/a%20b/c d", "gs://b/a%20b/c d", "gs", "b", "a%20b/c d"),
        ("az://c/p", "az://c/p", "az", "c", "p"),
        ("abfss://c@acc.dfs.core.windows.net/p", "abfss://c@acc.dfs.core.windows.net/p", "az", "c", "p"),
        ("s3://b/p?q#r", "s3://b/p?q#r", "s3", "b", "p?q#r"),
    ],
)
def test_urls_are_split_literally(given, uri, scheme, bucket, prefix) -> None:
    location = parse_location(given)
    assert (location.uri, location.scheme, location.bucket, location.prefix) == (uri, scheme, bucket, prefix)


@pytest.mark.parametrize("given", ["s3://", "s3:///p", "s3://b//p", "s3://b/../p", "ftp://b/p", "s3://b:9000/p"])
def test_urls_without_a_plain_base_are_invalid(given) -> None:
    with pytest.raises(Invalid):
        parse_location(given)


def test_keys_in_a_url_are_refused_without_showing_them() -> None:
    with pytest.raises(Invalid, match="as options") as caught:
        open_storage("s3a://AKIAKEY:topsecret@bucket/p")
    assert "AKIA" not in str(caught.value)
    assert "topsecret" not in str(caught.value)
    assert "topsecret" not in repr(caught.value.facts)


S3 = parse_location("s3a://data/t")


def test_hadoop_names_of_s3_are_understood() -> None:
    options = {
        "fs.s3a.access.key": "A",
        "spark.hadoop.fs.s3a.secret.key": "B",
        "fs.s3a.session.token": "C",
        "fs.s3a.endpoint": "minio.local:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "eu-west-1",
        "fs.s3a.encryption.algorithm": "SSE-KMS",
        "fs.s3a.encryption.key": "arn:k",
        "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "hoodie.table.name": "t",
        "path": "x",
    }
    assert store_options(S3, options) == {
        "access_key_id": "A",
        "secret_access_key": "B",
        "session_token": "C",
        "endpoint": "http://minio.local:9000",
        "virtual_hosted_style_request": "false",
        "region": "eu-west-1",
        "server_side_encryption": "aws:kms",
        "sse_kms_key_id": "arn:k",
    }


def test_an_option_of_the_bucket_wins_over_the_general_one() -> None:
    options = {"fs.s3a.access.key": "A", "fs.s3a.bucket.data.access.key": "D", "fs.s3a.bucket.other.access.key": "O"}
    assert store_options(S3, options) == {"access_key_id": "D"}


def test_an_obstore_name_wins_over_a_hadoop_name() -> None:
    assert store_options(S3, {"aws_region": "x", "fs.s3a.endpoint.region": "y"}) == {"region": "x"}
    assert store_options(S3, {"AWS_Access_Key_Id": "k", "allow_http": True}) == {
        "access_key_id": "k",
        "allow_http": "true",
    }


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("s3.eu-central-1.amazonaws.com", {"region": "eu-central-1"}),
        ("https://s3.us-west-2.amazonaws.com", {"region": "us-west-2"}),
        ("s3.amazonaws.com", {}),
        ("https://store.example:443", {"endpoint": "https://store.example:443"}),
        ("store.example", {"endpoint": "https://store.example"}),
    ],
)
def test_s3_endpoints_become_a_region_or_an_endpoint(endpoint, expected) -> None:
    assert store_options(S3, {"fs.s3a.endpoint": endpoint}) == expected


def test_anonymous_access_is_understood() -> None:
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    assert store_options(S3, {"fs.s3a.aws.credentials.provider": provider}) == {"skip_signature": "true"}


def test_hadoop_names_of_azure_are_understood() -> None:
    location = parse_location("abfss://c@acc.dfs.core.windows.net/t")
    options = {
        "fs.azure.account.key": "general",
        "fs.azure.account.key.acc.dfs.core.windows.net": "mine",
        "fs.azure.account.key.other.dfs.core.windows.net": "theirs",
        "fs.azure.account.oauth2.client.id": "id",
        "fs.azure.account.oauth2.client.secret.acc.dfs.core.windows.net": "secret",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant-1/oauth2/token",
    }
    assert store_options(location, options) == {
        "account_name": "acc",
        "account_key": "mine",
        "client_id": "id",
        "client_secret": "secret",
        "authority_host": "https://login.microsoftonline.com",
        "tenant_id": "tenant-1",
    }


def test_another_azure_cloud_becomes_an_endpoint() -> None:
    location = parse_location("abfss://c@acc.dfs.core.chinacloudapi.cn/t")
    assert store_options(location, {})["endpoint"] == "https://acc.blob.core.chinacloudapi.cn"


def test_hadoop_names_of_google_are_understood() -> None:
    options = {"google.cloud.auth.service.account.json.keyfile": "/k.json", "google_skip_signature": "true"}
    assert store_options(parse_location("gs://b/t"), options) == {
        "service_account": "/k.json",
        "skip_signature": "true",
    }


def test_a_mistyped_name_is_invalid_and_the_nearest_is_named() -> None:
    with pytest.raises(Invalid, match="aws_access_key_id"):
        open_storage("s3://b/t", {"aws_acess_key_id": "x"})


def test_a_bad_value_is_invalid_and_secrets_are_not_shown() -> None:
    options = {"aws_access_key_id": "AKIAKEY", "aws_secret_access_key": "topsecret", "timeout": "soon-topsecret"}
    with pytest.raises(Invalid, match="not accepted") as caught:
        open_storage("s3://b/t", options)
    assert "topsecret" not in str(caught.value)
    with pytest.raises(Invalid, match="max_retries"):
        open_storage("s3://b/t", {"max_retries": "many"})


@pytest.mark.parametrize(
    "uri",
    [
        "s3://b/t",
        "gs://b/t",
        "az://c/t",
        "abfss://c@acc.dfs.core.windows.net/t",
        "wasbs://c@acc.blob.core.windows.net/t",
    ],
)
def test_storages_open_without_contact_and_without_secrets_in_repr(uri) -> None:
    options = {
        "aws_secret_access_key": "c2VjcmV0",
        "aws_access_key_id": "AKIA",
        "azure_storage_account_key": "c2VjcmV0",
        "azure_storage_account_name": "acc",
        "google_skip_signature": "true",
    }
    own = {name: value for name, value in options.items() if name[:2] == {"s3": "aw", "gs": "go"}.get(uri[:2], "az")}
    storage = open_storage(uri, own)
    assert storage.uri == uri
    assert storage.absolute("p/f") == f"{uri}/p/f"
    assert "c2VjcmV0" not in repr(storage)


def test_what_is_shown_is_short_and_without_secrets() -> None:
    text = "Error PUT https://h/x?comp=1&sig=abc%3D - denied for key-1234\n\nDebug source: Authorization"
    assert masked(text, ()) == "Error PUT https://h/x?comp=1"
    assert masked("denied for key-1234: <?xml version", ("key-1234",)) == "denied for ***"
    options = {"aws_secret_access_key": "abcdef", "aws_region": "eu-west-1", "hoodie.recordkey.field": "customer"}
    assert secrets_of(options) == ("abcdef",)


@pytest.mark.parametrize("algorithm", ["AES256", "SSE-KMS", "DSSE-KMS"])
def test_a_store_opens_with_each_encryption_of_s3_that_hadoop_names(algorithm) -> None:
    options = {"fs.s3a.encryption.algorithm": algorithm, "fs.s3a.encryption.key": "key"}
    open_storage("s3://bucket/base", options)


@pytest.mark.parametrize("algorithm", ["SSE-C", "CSE-KMS", "CSE-CUSTOM"])
def test_an_encryption_that_is_not_done_here_is_refused(algorithm) -> None:
    with pytest.raises(Invalid):
        open_storage("s3://bucket/base", {"fs.s3a.encryption.algorithm": algorithm, "fs.s3a.encryption.key": "key"})


@pytest.mark.parametrize("name", ["aws_endpoint", "fs.s3a.endpoint", "proxy_url", "AWS_ENDPOINT_URL"])
def test_a_password_in_the_url_of_an_endpoint_is_not_shown(name: str) -> None:
    options = {name: "https://someone:p%40ssw0rd@store.example:9000/x", "path": "abfss://data@account.host/p"}
    text = "error sending request to https://someone:p%40ssw0rd@store.example:9000/b/k as p@ssw0rd of data"
    assert masked(text, secrets_of(options)) == (
        "error sending request to https://***@store.example:9000/b/k as *** of data"
    )


def test_a_process_has_one_client_for_the_same_place_options_and_environment(monkeypatch) -> None:
    place, options = parse_location("s3://b/p"), {"aws_region": "eu-west-1", "hoodie.table.name": "a"}
    monkeypatch.setenv("AWS_SESSION_TOKEN", "one")
    client = open_store(place, options)
    assert open_store(parse_location("s3://b/p/"), options | {"hoodie.table.name": "b"}) is client
    assert open_store(parse_location("s3://b/q"), options) is not client
    assert open_store(place, options | {"aws_region": "eu-west-2"}) is not client
    monkeypatch.setenv("AWS_SESSION_TOKEN", "two")
    assert open_store(place, options) is not client
    monkeypatch.setenv("AWS_SESSION_TOKEN", "one")
    assert open_store(place, options) is client

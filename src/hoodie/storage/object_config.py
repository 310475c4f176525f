"""From a URL and options to the client of an object store. Pure but for making the client; nothing is contacted.

1. URLs: `s3://`, `s3a://`, `s3n://` bucket; `gs://` bucket; `az://`, `azure://` container; `abfs[s]://`, `wasb[s]://`
   container@account.host. What follows is taken literally: nothing is percent-decoded.
2. Options may use obstore's names (`aws_access_key_id`, `access_key_id`, `timeout` ...) or Hadoop's
   (`fs.s3a.access.key`, with or without `spark.hadoop.` in front, also per bucket). An obstore name wins over
   a Hadoop name.
3. Names of others (`hoodie.*`, other `fs.*`, `path` ...) are left alone, because callers pass all they have; but a name
   that starts like a credential of the store and is none is an error, with the nearest name.
4. A process has one client for the same place, options and environment: its connections and the credentials it got by
   asking are used again by the next write or task. Connecting anew takes two or three round trips.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from obstore.store import AzureStore, GCSStore, S3Store

from hoodie.errors import Invalid
from hoodie.storage.contract import checked_path

SCHEMES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs",), "gs"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "wasb", "wasbs"), "az"),
}

# A request is repeated on a lost connection and on "slow down", for about ten seconds in all.
_MAX_RETRIES = 8
_RETRY_TIMEOUT = timedelta(seconds=90)
_CLIENT_DEFAULTS = {"connect_timeout": "10s", "timeout": "120s", "user_agent": "hoodie"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLIENT_OPTIONS = _words(
    "allow_http allow_invalid_certificates connect_timeout pool_idle_timeout pool_max_idle_per_host proxy_url"
    " proxy_ca_certificate proxy_excludes root_certificate randomize_addresses read_timeout timeout user_agent"
)
_STORE_OPTIONS = {
    "s3": _words(
        "access_key_id secret_access_key session_token token region default_region endpoint endpoint_url"
        " virtual_hosted_style_request checksum_algorithm conditional_put copy_if_not_exists disable_tagging"
        " disable_bulk_delete metadata_endpoint imdsv1_fallback request_payer role_arn"
        " role_session_name server_side_encryption skip_signature sse_bucket_key_enabled sse_customer_key_base64"
        " sse_kms_key_id unsigned_payload web_identity_token_file s3_express"
        " container_credentials_relative_uri container_credentials_full_uri"
        " container_authorization_token_file"
    ),
    "gs": _words(
        "service_account service_account_path service_account_key base_url bearer_token application_credentials"
        " skip_signature"
    ),
    "az": _words(
        "account_name account_key access_key client_id client_secret credential_type tenant_id authority_host"
        " authority_id sas_key sas_token token bearer_token use_emulator use_fabric_endpoint endpoint msi_endpoint"
        " object_id msi_resource_id federated_token_file use_azure_cli skip_signature disable_tagging"
        " fabric_token_service_url fabric_workload_host fabric_session_token fabric_cluster_identifier"
    ),
}
_ENVIRONMENT = ("AWS_", "GOOGLE_", "AZURE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CLIENTS = 32
_Pairs = tuple[tuple[str, str], ...]
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_")}
_USER_IN_URL = re.compile(r"(?<=http://)[^/?#\s]+(?=@)|(?<=https://)[^/?#\s]+(?=@)")
_SECRET_WORDS = ("key", "secret", "token", "password", "sas", "credential", "service_account", "keyfile")

_S3A = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
    "encryption.key": "sse_kms_key_id",
    "server-side-encryption.key": "sse_kms_key_id",
    "requester.pays.enabled": "request_payer",
    "attempts.maximum": "max_retries",
    "assumed.role.arn": "role_arn",
}
_GCS = {
    "google.cloud.auth.service.account.json.keyfile": "service_account",
    "fs.gs.auth.service.account.json.keyfile": "service_account",
    "fs.gs.storage.root.url": "base_url",
}
_ABFS = {
    "fs.azure.account.key": "account_key",
    "fs.azure.sas.fixed.token": "sas_key",
    "fs.azure.account.oauth2.client.id": "client_id",
    "fs.azure.account.oauth2.client.secret": "client_secret",
    "fs.azure.account.oauth2.msi.tenant": "tenant_id",
}


@dataclass(frozen=True, slots=True)
class Location:
    """Where the base is: kind of store, bucket or container, Azure account and host (else empty), key prefix."""

    uri: str
    scheme: str
    bucket: str
    account: str
    host: str
    prefix: str


def parse_location(uri: str) -> Location:
    """The parts of an object store URL.

    Raises:
        Invalid: unknown scheme, no bucket, credentials inside the URL (not repeated in the message), or a bad path.
    """
    given, _, rest = uri.partition("://")
    scheme = SCHEMES.get(given.lower())
    authority, _, path = rest.partition("/")
    path = path.rstrip("/")
    if scheme is None or not authority:
        raise Invalid(f"{given}:// URL has no known store or bucket", remedy="Use scheme://bucket/path", scheme=given)
    bucket, at, host = authority.partition("@")
    if (at and scheme != "az") or ":" in authority:
        raise Invalid(
            f"The {given}:// URL holds more than a bucket before the path",
            remedy="Give keys and endpoints as options, not in the URL",
            scheme=given,
        )
    account, _, domain = host.partition(".")
    return Location(
        uri=f"{given}://{authority}/{path}".rstrip("/"),
        scheme=scheme,
        bucket=bucket,
        account=account,
        host=domain,
        prefix=checked_path(path, root_allowed=True),
    )


def open_store(location: Location, options: Mapping[str, str]) -> Any:
    """The obstore client for a base, its keys relative to the base; the same one for the same arguments.

    Raises:
        Invalid: an option name is mistyped or a value is not understood.
    """
    config = store_options(location, options)
    client = {**_CLIENT_DEFAULTS, **{name: config.pop(name) for name in list(config) if name in _CLIENT_OPTIONS}}
    endpoint = config.get("endpoint", config.get("endpoint_url", config.get("base_url", "")))
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", "true")
    retries = _integer("max_retries", config.pop("max_retries", _MAX_RETRIES))
    patience = timedelta(seconds=_integer("retry_timeout", config.pop("retry_timeout", 0))) or _RETRY_TIMEOUT
    try:
        return _made_store(
            location,
            config=_pairs(config),
            client=_pairs(client),
            retries=retries,
            patience=patience,
            environment=_environment(),
        )
    except Exception as error:  # obstore raises its own kinds and built-in ones for a bad value
        shown = masked(str(error), secrets_of(options))
        raise Invalid(f"The options for {location.uri} are not accepted: {shown}", uri=location.uri) from None


@lru_cache(_CLIENTS)
def _made_store(
    location: Location, *, config: _Pairs, client: _Pairs, retries: int, patience: timedelta, environment: _Pairs
) -> Any:
    del environment  # the client reads it when it is made: where it has changed, another client is needed
    maker = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[location.scheme]
    return maker(
        location.bucket,
        prefix=location.prefix or None,
        config=dict(config) or None,
        client_options=dict(client),
        retry_config={"max_retries": retries, "retry_timeout": patience},
    )


def _environment() -> _Pairs:
    """What a client may take from the environment."""
    return _pairs({name: value for name, value in os.environ.items() if name.upper().startswith(_ENVIRONMENT)})


def _pairs(options: Mapping[str, str]) -> _Pairs:
    return tuple(sorted(options.items()))


def store_options(location: Location, options: Mapping[str, str]) -> dict[str, str]:
    """The options meant for this store, by obstore's names without `aws_` and the like, lower case, values as text."""
    plain = {name.removeprefix("spark.hadoop."): _text(value) for name, value in options.items() if value is not None}
    found = _from_hadoop(location, plain)
    if location.account:
        found["account_name"] = location.account
    if location.host and not location.host.endswith("core.windows.net"):
        found["endpoint"] = f"https://{location.account}.{location.host.replace('dfs.', 'blob.', 1)}"
    for name, value in plain.items():
        if (known := _own_name(location.scheme, name)) is not None:
            found[known] = value
    return found


def secrets_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Option values that must not be shown: those whose name speaks of keys or credentials, but no table options; and
    what stands before the host in the URL of an endpoint or a proxy.
    """
    named = tuple(
        text
        for name, value in options.items()
        if not name.startswith("hoodie.")
        and any(word in name.lower() for word in _SECRET_WORDS)
        and len(text := _text(value)) >= 4
    )
    passwords = (user.partition(":")[2] for value in options.values() for user in _USER_IN_URL.findall(_text(value)))
    return (*named, *(text for one in passwords for text in {one, unquote(one)} if len(text) >= 4))


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """`text` cut to what a person needs, with secrets replaced by stars."""
    shown = text.partition("\n\nDebug source")[0].partition("<?xml")[0]
    for secret in sorted(secrets, key=len, reverse=True):
        shown = shown.replace(secret, "***")
    shown = _USER_IN_URL.sub("***", shown)
    for mark in ("?sig=", "&sig=", "X-Amz-Signature=", "X-Amz-Credential=", "X-Goog-Signature=", "Signature="):
        shown = shown.partition(mark)[0]
    return " ".join(shown.split())[:300].rstrip(" :")


def _own_name(scheme: str, name: str) -> str | None:
    """Canonical form of an obstore option name of this store; None for a name of somebody else.

    Raises:
        Invalid: the name starts like one of this store, and is none.
    """
    lower = name.lower()
    known = _STORE_OPTIONS[scheme] | _CLIENT_OPTIONS | {"max_retries", "retry_timeout"}
    if lower in known:
        return lower
    for prefix in _PREFIXES[scheme]:
        bare = lower.removeprefix(prefix)
        if bare != lower and bare in known:
            return bare
    if lower.startswith(_PREFIXES[scheme]):
        near = difflib.get_close_matches(lower, [_PREFIXES[scheme][0] + option for option in known], n=1)
        raise Invalid(
            f"{name!r} is not an option of this object store",
            remedy=f"Did you mean {near[0]!r}?" if near else None,
            option=name,
        )
    return None


def _from_hadoop(location: Location, plain: Mapping[str, str]) -> dict[str, str]:
    match location.scheme:
        case "s3":
            return _from_s3a(location.bucket, plain)
        case "gs":
            return {_GCS[name]: value for name, value in plain.items() if name in _GCS}
        case _:
            return _from_abfs(location.account, plain)


def _from_s3a(bucket: str, plain: Mapping[str, str]) -> dict[str, str]:
    general = {name.removeprefix("fs.s3a."): value for name, value in plain.items() if name.startswith("fs.s3a.")}
    own = f"bucket.{bucket}."
    s3a = {**general, **{name.removeprefix(own): value for name, value in general.items() if name.startswith(own)}}
    found = {_S3A[name]: value for name, value in s3a.items() if name in _S3A}
    if endpoint := s3a.get("endpoint", ""):
        if endpoint.rstrip("/").endswith("amazonaws.com"):
            if (region := _aws_region(endpoint)) and "region" not in found:
                found["region"] = region
        elif "://" in endpoint:
            found["endpoint"] = endpoint
        else:
            found["endpoint"] = f"{'http' if _no(s3a.get('connection.ssl.enabled')) else 'https'}://{endpoint}"
    if "path.style.access" in s3a:
        found["virtual_hosted_style_request"] = "true" if _no(s3a["path.style.access"]) else "false"
    if "Anonymous" in s3a.get("aws.credentials.provider", ""):
        found["skip_signature"] = "true"
    algorithm = s3a.get("encryption.algorithm", s3a.get("server-side-encryption-algorithm", ""))
    if algorithm:
        found["server_side_encryption"] = {"SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}.get(algorithm, algorithm)
    return found


def _from_abfs(account: str, plain: Mapping[str, str]) -> dict[str, str]:
    """Azure names may end in `.account.dfs.core.windows.net`; one for this account wins over the general one."""
    found: dict[str, str] = {}
    for mine in (False, True):
        for name, value in plain.items():
            for hadoop, known in _ABFS.items():
                tail = name.removeprefix(hadoop)
                if tail != name and (tail.startswith(f".{account}.") if mine else tail == ""):
                    found[known] = value
            tail = name.removeprefix("fs.azure.account.oauth2.client.endpoint")
            if tail != name and (tail.startswith(f".{account}.") if mine else tail == ""):
                host, _, rest = value.removeprefix("https://").partition("/")
                found["authority_host"] = f"https://{host}"
                found["tenant_id"] = rest.split("/")[0]
    return found


def _aws_region(endpoint: str) -> str | None:
    parts = endpoint.rpartition("://")[2].partition("/")[0].split(".")
    return parts[-3] if len(parts) > 3 and parts[-3] != "s3" else None


def _no(text: str | None) -> bool:
    return (text or "").strip().lower() in ("false", "0", "no")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _integer(name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise Invalid(f"Option {name!r} is not a whole number", option=name) from None

"""Locks in a DynamoDB table, as the lock client of AWS keeps them, so that Hudi's DynamoDB lock provider and we exclude
each other.

1. An item stands for a lock: `key`, `ownerName`, `leaseDuration` (milliseconds as text), `recordVersionNumber`, a
   random one for each renewal. It is deleted when the lock is given back; one that says `isReleased` is free, too.
2. It is only ever put, changed or deleted under a condition on the version that was read: of two, one wins.
3. The holder renews it every third of the lease. A holder that died has not renewed it: who sees one and the same
   version for a whole lease, by a clock of its own, takes it. So clocks of machines are never compared, and who
   does not wait for a lease takes no dead holder's lock.
4. Who could not renew in time may have lost it: it says so before the next step that cannot be taken back.
"""

from __future__ import annotations

import logging
import platform
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, Unavailable, Unsupported
from hoodie.locks.lock_provider import Held
from hoodie.locks.waiting import AT_ONCE, Patience, in_line
from hoodie.storage.fence import is_own_step, with_fence
from hoodie.storage.lock_holder import LockHolder, encode_holder, in_words, parse_holder, this_holder

S = TypeVar("S")

log = logging.getLogger(__name__)

_ENV = SystemEnv()
_LONGEST_PAUSE_S = 1.0
_NAMES = {"#k": "key", "#v": "recordVersionNumber", "#o": "ownerName"}
_MINE = "attribute_exists(#k) AND #v = :v AND #o = :o"


@dataclass(frozen=True, slots=True)
class DynamoDBLocks:
    """The item `key` of a table, which is made if need be. A lease is `lease_ms` long."""

    table: str
    key: str
    region: str
    endpoint_url: str | None = None
    lease_ms: int = 60_000

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`.

        Raises:
            Unavailable: DynamoDB does not answer, or refuses.
        """
        key = f"{self.key}.{scope}" if scope else self.key
        item = _Item(self._client(), self, key, f"{platform.node()}{_ENV.uuid()}")
        in_line(("dynamodb", self.table, key), patience, _LONGEST_PAUSE_S, lambda: item.take(what))
        stop = threading.Event()
        keeper = threading.Thread(target=item.keep, args=(stop,), name="lock in DynamoDB", daemon=True)
        keeper.start()
        try:
            yield item
        finally:
            stop.set()
            keeper.join()
            item.give_back()

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`. A dead holder is told of until another has taken its lock."""
        key = f"{self.key}.{scope}" if scope else self.key
        found = _Item(self._client(), self, key, "").found()
        return () if found is None or "isReleased" in found else (parse_holder(found.get("data", {}).get("B", b"")),)

    def _client(self) -> Any:
        try:
            import boto3  # noqa: PLC0415 - optional
        except ModuleNotFoundError as error:
            raise Unsupported(
                "Locks in DynamoDB need the package boto3", remedy="pip install 'hoodie[dynamodb]'"
            ) from error
        return boto3.client("dynamodb", region_name=self.region, endpoint_url=self.endpoint_url)


@dataclass(slots=True, eq=False)
class _Item:
    """One hold: a `Held`, and a `hoodie.storage.fence.Fence`."""

    client: Any
    locks: DynamoDBLocks
    key: str
    owner: str
    version: str | None = None
    renewed_s: float = 0.0
    seen: tuple[str, float] | None = None
    is_over: bool = False
    deletes_own: bool = False
    reopens: bool = False

    def take(self, what: str) -> None:
        """The item is this one's now. Raises: Conflict: it is another's."""
        now_s = _ENV.monotonic()
        found = self._read()
        if found is None:
            condition, values = "attribute_not_exists(#k)", {}
        elif "isReleased" in found:
            condition, values = "attribute_exists(#k) AND isReleased = :r", {":r": {"S": "1"}}
        else:
            version = found["recordVersionNumber"]["S"]
            if self.seen is None or self.seen[0] != version:
                self.seen = version, now_s
            if (now_s - self.seen[1]) * 1000 <= int(found["leaseDuration"]["S"]):
                raise self._held_by_another(what, found)
            condition, values = "#v = :v", {":v": {"S": version}}
        fresh = _ENV.uuid()
        item = {
            "key": {"S": self.key},
            "ownerName": {"S": self.owner},
            "leaseDuration": {"S": str(self.locks.lease_ms)},
            "recordVersionNumber": {"S": fresh},
            "data": {"B": encode_holder(this_holder(what))},
        }
        if not self._changed("put_item", condition, values, Item=item):
            raise self._held_by_another(what, self._read() or {})
        self.version, self.renewed_s = fresh, now_s

    def keep(self, stop: threading.Event) -> None:
        """Renews the item until told to stop."""
        while not stop.wait(self.locks.lease_ms / 3000):
            began_s, fresh = _ENV.monotonic(), _ENV.uuid()
            try:
                kept = self._changed(
                    "update_item",
                    _MINE,
                    {**self._mine(), ":n": {"S": fresh}, ":l": {"S": str(self.locks.lease_ms)}},
                    Key={"key": {"S": self.key}},
                    UpdateExpression="SET leaseDuration = :l, #v = :n",
                )
            except Unavailable as error:
                log.warning("the lock %s was not renewed: %s", self.key, error.cause)
                continue
            if not kept:
                log.warning("the lock %s was taken by another writer", self.key)
                self.version = None
                return
            self.version, self.renewed_s = fresh, began_s

    def give_back(self) -> None:
        """Deletes the item, if it is still this one's. A failure blocks others for a lease, so it is logged."""
        self.is_over = True
        if self.version is None:
            return
        try:
            self._changed("delete_item", _MINE, self._mine(), Key={"key": {"S": self.key}})
        except Unavailable as error:
            log.warning("the lock %s was not given back: %s", self.key, error.cause)

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """See `Held` and `Fence`."""
        late_ms = (_ENV.monotonic() - self.renewed_s) * 1000
        if self.is_over or is_own_step(self, to_delete=to_delete) or (self.version and late_ms < self.locks.lease_ms):
            return
        raise Fenced(
            f"The lock {self.key} in DynamoDB could not be renewed, so another writer may be at work",
            remedy="Read the table again and repeat what you did",
            key=self.key,
        )

    def keeps(self, path: str) -> bool:
        """See `Fence`. The lock is no file."""
        del path
        return False

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return with_fence(storage, self)

    def _mine(self) -> dict[str, Any]:
        return {":v": {"S": self.version}, ":o": {"S": self.owner}}

    def _read(self) -> Mapping[str, Any] | None:
        """The item, in a table that is there now."""
        return self.found(self._make_table)

    def found(self, without_table: Callable[[], None] = lambda: None) -> Mapping[str, Any] | None:
        """The item; None where there is none. `without_table` is called where its table is not there either."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - optional

        try:
            found = self.client.get_item(TableName=self.locks.table, Key={"key": {"S": self.key}}, ConsistentRead=True)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise self._unavailable(error) from error
            without_table()
            return None
        except BotoCoreError as error:
            raise self._unavailable(error) from error
        item: Mapping[str, Any] | None = found.get("Item")
        return item

    def _changed(self, call: str, condition: str, values: Mapping[str, Any], **more: Any) -> bool:
        """Whether the item was as the condition says, and is changed."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - optional

        names = {name: text for name, text in _NAMES.items() if name in condition + more.get("UpdateExpression", "")}
        given = {"ExpressionAttributeValues": dict(values)} if values else {}
        try:
            getattr(self.client, call)(
                TableName=self.locks.table,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                **given,
                **more,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise self._unavailable(error) from error
        except BotoCoreError as error:
            raise self._unavailable(error) from error
        return True

    def _make_table(self) -> None:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - optional

        try:
            self.client.create_table(
                TableName=self.locks.table,
                KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceInUseException":  # another makes it
                raise self._unavailable(error) from error
        except BotoCoreError as error:
            raise self._unavailable(error) from error
        self.client.get_waiter("table_exists").wait(TableName=self.locks.table, WaiterConfig={"Delay": 1})

    def _held_by_another(self, what: str, found: Mapping[str, Any]) -> Conflict:
        holder = parse_holder(found.get("data", {}).get("B", b""))
        who = in_words(holder) or f" ({found.get('ownerName', {}).get('S', 'unknown')})"
        return Conflict(
            f"Another writer{who} holds the lock {self.key} in DynamoDB, so {what} cannot start",
            remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms); one that died "
            "lets go when its lease has run out",
            key=self.key,
            holder=holder,
        )

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"DynamoDB does not answer for the lock {self.key}: {error}",
            remedy="Check hoodie.write.lock.dynamodb.*, the credentials, and that the service answers; then try again",
        )

"""The worked examples of docs/format/savepoint-restore.md are what the code writes and reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hoodie.spec import (
    InstantInfo,
    RestorePlan,
    SavepointMetadata,
    encode_restore_plan,
    encode_savepoint_metadata,
    parse_container,
)

PAGE = Path(__file__).parents[3] / "docs" / "format" / "savepoint-restore.md"


def examples() -> list[dict[str, Any]]:
    blocks = re.findall(r"```\n(\{.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [json.loads(block) for block in blocks]


def test_examples_are_the_records_of_the_files() -> None:
    savepoint, plan = examples()
    files = {"p0": ("a-0_0-1-2_20261121062631396.parquet", ".a-0_20261121062631396.log.1_0-2-3")}
    data = encode_savepoint_metadata(SavepointMetadata("u", 1795242393805, "sp", files))
    assert parse_container(data, "x") == ("HoodieSavepointMetadata", savepoint)
    undone = tuple(InstantInfo(time, "deltacommit") for time in ("20261121062634925", "20261121062633873"))
    assert parse_container(encode_restore_plan(RestorePlan(undone, "20261121062632511")), "x") == (
        "HoodieRestorePlan",
        plan,
    )

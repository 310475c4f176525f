from __future__ import annotations

import pytest


@pytest.fixture(params=[6, 8, 9], ids=["v6", "v8", "v9"])
def version(request: pytest.FixtureRequest) -> int:
    return request.param

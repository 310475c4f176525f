"""What is wrong with a table's files and timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hoodie.present.forms import Form

if TYPE_CHECKING:
    from hoodie.query import Finding

_FINDING: Form[Finding] = Form(title=lambda finding: f"{finding.kind}: {finding.path}", noun="finding")

FORMS: Final = {"Finding": _FINDING}

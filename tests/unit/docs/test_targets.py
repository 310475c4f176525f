"""Every test runs in exactly one of the targets that `.ci/run` makes (some repeat others elsewhere)."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
REPEATING = {"test-oldest", "test-newest", "test-prefixes", "test-buckets"}
MARKERS = ("spark", "compat", "wheel", "long", "deep")


def _made(target: str) -> list[str]:
    """The target and those it is made of."""
    rule = re.search(rf"^{target}:([^#\n]*)", MAKEFILE, re.MULTILINE)
    assert rule is not None, f"the Makefile has no target {target}"
    return [target, *(inner for name in rule[1].split() if name.startswith("test") for inner in _made(name))]


def _runs() -> list[str]:
    """The arguments of each run of pytest that `.ci/run` makes."""
    lines = re.findall(r"^make (.+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    called = [name for line in lines for name in line.split() if not name.startswith("-")]
    recipes = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE))
    targets = [inner for name in called if name not in REPEATING for inner in _made(name)]
    return [run for name in targets for run in re.findall(r"\$\(PYTEST\)(.*)", recipes[name])]


def test_every_kind_of_test_belongs_to_exactly_one_run() -> None:
    """Nothing but a condition on markers chooses what runs, and one condition holds for each set of markers."""
    conditions = [re.fullmatch(r'(?: -n 2 --dist \w+)? -m "([a-z ]+)"', run) for run in _runs()]
    assert None not in conditions, _runs()
    for values in itertools.product((False, True), repeat=len(MARKERS)):
        markers = dict(zip(MARKERS, values, strict=True))
        chosen = [found[1] for found in conditions if found and eval(found[1], {}, dict(markers))]
        assert len(chosen) == 1, (markers, chosen)


def test_the_first_steps_on_spark_are_those_that_other_versions_take() -> None:
    (named,) = re.findall(r"^FIRST_STEPS := \$\(addprefix tests/spark/,(.+)\)$", MAKEFILE, re.MULTILINE)
    marked = [path.name for path in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.first]" in path.read_text()]
    assert sorted(named.split()) == sorted(name for name in marked if name != Path(__file__).name)


def test_every_file_with_tests_has_a_name_that_is_collected() -> None:
    named = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"^(?:async )?def test_|^class Test", path.read_text(encoding="utf-8"), re.MULTILINE)
        and not path.name.startswith("test_")
    ]
    assert named == []


def test_no_two_files_of_tests_share_a_name() -> None:
    """pytest imports them by their names, and refuses the second."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert not [name for name in names if names.count(name) > 1]


def test_the_target_for_a_browser_fails_where_there_is_none(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"^\t(.*)tests/browser$", MAKEFILE, re.MULTILINE)
    told = dict(word.split("=", 1) for word in recipe.split() if word.startswith("HOODIE_"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'pytest'}"]
    without = {name: value for name, value in os.environ.items() if name != "CHROMIUM"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [*command, "tests/browser"], cwd=ROOT, env=without | told, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "apt-get install chromium" in done.stdout

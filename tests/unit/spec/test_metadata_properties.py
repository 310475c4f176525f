"""What is written around a table by its version: properties of its metadata table, members of its compaction plans."""

import pytest

from hoodie.spec import V6, V8, V9, CompactionOperation, FormatProfile, TableConfig, keys, new_compaction_plan
from hoodie.spec.new_table import metadata_table_properties

EVERY = pytest.mark.parametrize("profile", [V6, V8, V9], ids=["v6", "v8", "v9"])
SINCE_8 = pytest.mark.parametrize("profile", [V8, V9], ids=["v8", "v9"])


def properties(profile: FormatProfile) -> dict[str, str]:
    return metadata_table_properties(TableConfig({keys.NAME: "t", keys.VERSION: str(profile.table_version)}))


@EVERY
def test_a_metadata_table_has_the_version_of_its_table(profile: FormatProfile) -> None:
    found = properties(profile)
    assert found[keys.NAME] == "t_metadata"
    assert found[keys.TYPE] == "MERGE_ON_READ"
    assert TableConfig(found).has_version(profile.table_version)
    assert not TableConfig(found).has_version(profile.table_version + 1)


def test_in_version_6_it_names_classes_and_has_one_folder() -> None:
    found = properties(V6)
    assert found[keys.ARCHIVE_FOLDER] == "archived"
    assert found[keys.KEYGEN_CLASS].endswith("HoodieTableMetadataKeyGenerator")
    assert keys.TIMELINE_PATH not in found
    assert keys.MERGE_MODE not in found


@SINCE_8
def test_since_version_8_it_names_types_and_folders_of_timeline_and_history(profile: FormatProfile) -> None:
    found = properties(profile)
    assert (found[keys.TIMELINE_PATH], found[keys.TIMELINE_HISTORY_PATH]) == ("timeline", "history")
    assert (found[keys.KEYGEN_TYPE], found[keys.MERGE_MODE]) == ("HOODIE_TABLE_METADATA", "CUSTOM")
    assert keys.KEYGEN_CLASS not in found


@EVERY
def test_a_new_plan_has_the_members_of_its_avro_generation(profile: FormatProfile) -> None:
    operations = (CompactionOperation("p", "f", "1", ("log",)),)
    plan = new_compaction_plan(operations, profile.avro_generation)
    assert plan.operations == operations
    around = (plan.extra_metadata, plan.missing_partitions)
    assert around == ((None, None) if profile is V6 else ({}, ()))

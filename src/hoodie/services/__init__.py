"""What is done to a table as a whole: writing to it, and keeping it healthy; undoing, upgrades, health."""

from hoodie.services.ingest import CommitNote, Request
from hoodie.services.save import SaveMode, chosen_operation, save_rows, write_table
from hoodie.services.undoing.left_behind import take_back
from hoodie.services.undoing.rollback import heal

__all__ = ["CommitNote", "Request", "SaveMode", "chosen_operation", "heal", "save_rows", "take_back", "write_table"]

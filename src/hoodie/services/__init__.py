"""What is done to a table as a whole: writing to it, and rolling back what failed."""

from hoodie.services.ingest import Request, SaveMode, chosen_operation, save_rows, write_table
from hoodie.services.rollback import heal, take_back

__all__ = ["Request", "SaveMode", "chosen_operation", "heal", "save_rows", "take_back", "write_table"]

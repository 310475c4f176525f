"""What is done to a table as a whole: writing to it, and keeping it healthy; rollback, upgrades, health."""

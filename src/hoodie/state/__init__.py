"""What is known of a table before anything is done with it: its handle, its timeline, its schema."""

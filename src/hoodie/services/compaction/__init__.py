"""Log files become base files: plans, triggers, executors, log compaction."""

"""Plans that replace files by files: one executor, and what each kind of plan says of itself."""

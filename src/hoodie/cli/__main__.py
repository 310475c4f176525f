"""`python -m hoodie.cli`, the same as the command `hoodie`."""

from hoodie.cli import main

main()

"""`python -m hoodie.cli`, the same as the command `hoodie`."""

import sys

from hoodie.cli import main

sys.exit(main())

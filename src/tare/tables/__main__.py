"""``python -m tare.tables``."""

import sys

from tare.tables import main

sys.exit(main())

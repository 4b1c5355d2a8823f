"""``python -m tare.figures``."""

import sys

from tare.figures import main

sys.exit(main())

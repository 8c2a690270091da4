"""How long what nobody refers to any more is kept, in ms: without imports, as options name these before anything is loaded."""

from typing import Final

DELETE_DELAY_MS: Final = 24 * 3_600_000
"""Objects of the archive that readers may still read."""
GRACE_MS: Final = 24 * 3_600_000
"""Objects that no manifest refers to."""

"""One segment on its way between the tiers: check, repair, upload, download."""

"""The back-ends: one file each, one way to put an agent behind a boundary. Imported when chosen, never before."""

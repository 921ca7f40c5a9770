"""The schedules: one file each, declared in `tercet.specs.schedules`."""

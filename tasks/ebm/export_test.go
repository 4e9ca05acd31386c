package ebm

// UpdateTicks is updateTicks, for tests.
type UpdateTicks = updateTicks

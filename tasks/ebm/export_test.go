package ebm

// UpdateTicks is updateTicks, for tests.
type UpdateTicks = updateTicks

// WriteCurves is writeCurves, for tests.
var WriteCurves = writeCurves

package ort

// A signalGuard does nothing on Windows, which has no signal handlers to lose.
type signalGuard struct{}

func saveSignals() *signalGuard     { return &signalGuard{} }
func (g *signalGuard) restore() int { return 0 }

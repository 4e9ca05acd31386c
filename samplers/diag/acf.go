package diag

// Autocorrelation returns the autocorrelation of a chain at lags 0 to lags, with the biased estimate of
// the autocovariance (divided by n), as in Geyer 1992. For a constant chain it is NaN from lag 1 on,
// for an empty one nil. Lags beyond the length of the chain are omitted.
func Autocorrelation(x []float64, lags int) []float64 {
	if len(x) == 0 {
		return nil
	}
	m := mean(x)
	lags = min(lags, len(x)-1)
	c := make([]float64, lags+1)
	for k := range c {
		for i := k; i < len(x); i++ {
			c[k] += (x[i] - m) * (x[i-k] - m)
		}
	}
	for k := lags; k >= 0; k-- {
		c[k] /= c[0]
	}
	c[0] = 1
	return c
}

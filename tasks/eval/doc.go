// Package eval implements protocols for comparing samplers and models.
//
//   - [Infilling] is the protocol of Zhang, Liu and Liu (2022, arXiv:2206.09914): samplers fill the blanks of a file of sentences, and the metrics of package textmetrics score the results.
//   - [Pairs] is the protocol of BLiMP (Warstadt et al. 2020): a model is right about a pair of sentences if it gives the good one the higher log-density.
//
// Results are plain data: records for JSON, and rows of cells for tables.
package eval

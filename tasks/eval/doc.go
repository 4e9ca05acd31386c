// Package eval holds the protocols that samplers and models are compared by.
//
//   - [Infilling] is that of Zhang, Liu and Liu (2022, arXiv:2206.09914): samplers fill the
//     blanks of a file of sentences, and the metrics of package textmetrics score what they
//     come to.
//   - [Pairs] is that of BLiMP (Warstadt et al. 2020): a model is right about a pair of
//     sentences when it gives the good one the higher log-density.
//
// Results are data: records for JSON, and rows of cells for tables.
package eval

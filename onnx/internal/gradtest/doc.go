// Package gradtest makes random instances of operators and runs them, for the tests of the packages
// about ONNX models.
package gradtest

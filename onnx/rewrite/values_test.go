package rewrite_test

import (
	"github.com/gradhop/gradhop/onnx/build"
	"github.com/gradhop/gradhop/onnx/internal/gradtest"
)

type (
	gen   = gradtest.Gen
	value = build.Value
)

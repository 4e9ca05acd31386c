package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gradhop/gradhop/onnx"
)

// MissingError lists the nodes between input and output that have no rule. It
// matches [errors.ErrUnsupported].
type MissingError struct {
	Nodes []*onnx.Node
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("grad: no gradient rule for %d node(s) on the path: %s", len(e.Nodes), labels(e.Nodes))
}

// ExitCode returns 2: bad usage or input.
func (*MissingError) ExitCode() int { return 2 }

// Is reports whether target is [errors.ErrUnsupported].
func (e *MissingError) Is(target error) bool { return target == errors.ErrUnsupported }

// CodesError lists the nodes that compute with the integers of an input, as with
// numbers, on the way to the output. The gradient at a one-hot encoding is defined
// where integers pick entries of a table. It matches [errors.ErrUnsupported].
type CodesError struct {
	Nodes []*onnx.Node
}

func (e *CodesError) Error() string {
	return fmt.Sprintf("grad: integers are computed with, not only used to index a table, by %d node(s): %s; export the model with a floating-point or one-hot input",
		len(e.Nodes), labels(e.Nodes))
}

// ExitCode returns 2: bad usage or input.
func (*CodesError) ExitCode() int { return 2 }

// Is reports whether target is [errors.ErrUnsupported].
func (e *CodesError) Is(target error) bool { return target == errors.ErrUnsupported }

func labels(nodes []*onnx.Node) string {
	s := make([]string, len(nodes))
	for i, n := range nodes {
		s[i] = n.Label()
	}
	return strings.Join(s, "; ")
}

// NoPathError reports that an output does not depend, differentiably, on a value.
type NoPathError struct{ From string }

func (e *NoPathError) Error() string {
	return fmt.Sprintf("grad: no differentiable path leads from %q to the output", e.From)
}

// ExitCode returns 2: bad usage or input.
func (*NoPathError) ExitCode() int { return 2 }

// ShapeError reports a gradient whose shape cannot be matched with its value's,
// because dimensions are unknown. Binding symbolic dimensions helps.
type ShapeError struct {
	Node, Value string
	Have, Want  string
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("grad: %s: gradient of %q has shape %s where the value has %s; bind the symbolic dimensions to numbers",
		e.Node, e.Value, e.Have, e.Want)
}

// ExitCode returns 2: bad usage or input.
func (*ShapeError) ExitCode() int { return 2 }

// OutputError reports that the gradient of an output of a node was asked for which
// its rule does not cover. It matches [errors.ErrUnsupported].
type OutputError struct {
	Node   string
	Output int
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("grad: %s: the gradient of output %d is not supported", e.Node, e.Output)
}

// ExitCode returns 2: bad usage or input.
func (*OutputError) ExitCode() int { return 2 }

// Is reports whether target is [errors.ErrUnsupported].
func (e *OutputError) Is(target error) bool { return target == errors.ErrUnsupported }

// OpsetError reports a model of an operator set that rules do not read. See
// [rewrite.Upgrade].
type OpsetError struct{ Need, Have int64 }

func (e *OpsetError) Error() string {
	return fmt.Sprintf("grad: the model is of operator set %d; upgrade it to %d first", e.Have, e.Need)
}

// ExitCode returns 2: bad usage or input.
func (*OpsetError) ExitCode() int { return 2 }

// TrainingError reports a node that runs in training mode, whose output is random.
type TrainingError struct{ Node string }

func (e *TrainingError) Error() string {
	return "grad: " + e.Node + " is in training mode; export the model for inference"
}

// ExitCode returns 2: bad usage or input.
func (*TrainingError) ExitCode() int { return 2 }

// NameError reports a name that the model does not have, or, with an empty Name, one
// that must be given because there is a choice.
type NameError struct {
	What string // "input" or "output"
	Name string
	Have []string
}

func (e *NameError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("grad: name the %s to differentiate; the model has %s", e.What, onnx.List(e.Have))
	}
	return fmt.Sprintf("grad: the model has no %s %q%s", e.What, e.Name, onnx.Nearest(e.Name, e.Have))
}

// ExitCode returns 2: bad usage or input.
func (*NameError) ExitCode() int { return 2 }

// TypeError reports a value whose element type has no gradient.
type TypeError struct {
	Value string
	Type  onnx.DataType // Undefined where it is unknown
}

func (e *TypeError) Error() string {
	if e.Type == onnx.Undefined {
		return fmt.Sprintf("grad: the element type of %q is unknown", e.Value)
	}
	return fmt.Sprintf("grad: %q is of type %s; gradients are of floating-point values, and of int32 and int64 inputs that index a table", e.Value, e.Type)
}

// ExitCode returns 2: bad usage or input.
func (*TypeError) ExitCode() int { return 2 }

// RowsError reports an output that is not one number a row where that was asked.
type RowsError struct{ Output, Shape string }

func (e *RowsError) Error() string {
	return fmt.Sprintf("grad: output %q has shape %s, which is not one number a row; ask for the gradient of the sum of its elements, or for the product of a vector with the Jacobian", e.Output, e.Shape)
}

// ExitCode returns 2: bad usage or input.
func (*RowsError) ExitCode() int { return 2 }

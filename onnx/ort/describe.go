package ort

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// A valueInfo is what a model declares of one of its inputs or outputs. The
// binding would load the model a second time to tell, so describe reads it from
// the file.
type valueInfo struct {
	name   string
	elem   elemType // 0 when not declared
	ranked bool     // whether dims is known
	dims   []int64  // -1 for a dimension that is symbolic or not given
}

// elemType is the ONNX TensorProto.DataType.
type elemType int32

const (
	elemFloat32 elemType = 1
	elemUint8   elemType = 2
	elemInt8    elemType = 3
	elemInt32   elemType = 6
	elemInt64   elemType = 7
	elemBool    elemType = 9
	elemFloat64 elemType = 11
)

const supportedTypes = "float32, float64, int64, int32, bool, uint8, int8"

var elemNames = map[elemType]string{
	0: "undeclared", elemFloat32: "float32", elemUint8: "uint8", elemInt8: "int8", 4: "uint16", 5: "int16",
	elemInt32: "int32", elemInt64: "int64", 8: "string", elemBool: "bool", 10: "float16", elemFloat64: "float64",
	12: "uint32", 13: "uint64", 16: "bfloat16",
}

func (e elemType) String() string {
	if s, ok := elemNames[e]; ok {
		return s
	}
	return fmt.Sprintf("number %d", int32(e))
}

// supported tells whether a Tensor can carry the type. A type that is not
// declared is left for the runtime to judge.
func (e elemType) supported() bool {
	switch e {
	case 0, elemFloat32, elemUint8, elemInt8, elemInt32, elemInt64, elemBool, elemFloat64:
		return true
	}
	return false
}

// describe reads the declared inputs and outputs of an ONNX model. Weights are
// stepped over, not read.
func describe(model []byte) (ins, outs []valueInfo, err error) {
	const modelGraph, graphInput, graphOutput = 7, 11, 12
	var graph []byte
	if err := fields(model, func(num protowire.Number, v []byte, _ uint64) error {
		if num == modelGraph {
			graph = v
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	if graph == nil {
		return nil, nil, errors.New("it is not an ONNX model: it has no graph")
	}
	err = fields(graph, func(num protowire.Number, v []byte, _ uint64) error {
		if num != graphInput && num != graphOutput {
			return nil
		}
		info, err := describeValue(v)
		if num == graphInput {
			ins = append(ins, info)
		} else {
			outs = append(outs, info)
		}
		return err
	})
	return ins, outs, err
}

// describeValue reads a ValueInfoProto: name=1, type=2 { tensor_type=1
// { elem_type=1, shape=2 { dim=1 { dim_value=1 } } } }.
func describeValue(b []byte) (info valueInfo, err error) {
	err = fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			info.name = string(v)
		case 2:
			return fields(v, func(num protowire.Number, v []byte, _ uint64) error {
				if num != 1 {
					info.elem = -elemType(num) // a sequence, map or the like
					return nil
				}
				return describeTensor(&info, v)
			})
		}
		return nil
	})
	return info, err
}

func describeTensor(info *valueInfo, b []byte) error {
	return fields(b, func(num protowire.Number, v []byte, n uint64) error {
		switch num {
		case 1:
			info.elem = elemType(n)
		case 2:
			info.ranked = true
			return fields(v, func(num protowire.Number, v []byte, _ uint64) error {
				dim := int64(-1)
				err := fields(v, func(num protowire.Number, _ []byte, n uint64) error {
					if num == 1 {
						dim = int64(n)
					}
					return nil
				})
				info.dims = append(info.dims, dim)
				return err
			})
		}
		return nil
	})
}

// fields calls f for every field of a protobuf message, with its bytes or its
// number.
func fields(b []byte, f func(num protowire.Number, v []byte, n uint64) error) error {
	for len(b) > 0 {
		num, typ, k := protowire.ConsumeTag(b)
		if k < 0 {
			return errBadModel
		}
		b = b[k:]
		var v []byte
		var n uint64
		switch typ {
		case protowire.BytesType:
			v, k = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			n, k = protowire.ConsumeVarint(b)
		default:
			k = protowire.ConsumeFieldValue(num, typ, b)
		}
		if k < 0 {
			return errBadModel
		}
		b = b[k:]
		if err := f(num, v, n); err != nil {
			return err
		}
	}
	return nil
}

var errBadModel = errors.New("it is not an ONNX model, or it is cut off")

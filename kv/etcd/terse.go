package etcd

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	pbv2 "google.golang.org/protobuf/proto"
)

// The numbers of the fields that terse reads by itself.
const (
	txnHeader    protowire.Number = 1 // of a TxnResponse
	txnSucceeded protowire.Number = 2
	txnResponses protowire.Number = 3
	opTxn        protowire.Number = 4 // of a ResponseOp
)

// tersely makes a call read the answer to a transaction by [terse].
var tersely = grpc.ForceCodecV2(terse{encoding.GetCodecV2(proto.Name)})

// terse is gRPC's codec, but of the transactions within one that is answered it reads only that they were done, if they
// were: for each, etcd says no more than what was asked and the whole header again.
type terse struct{ encoding.CodecV2 }

// Unmarshal implements [encoding.CodecV2].
func (c terse) Unmarshal(data mem.BufferSlice, v any) error {
	answer, ok := v.(*pb.TxnResponse)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	answer.Reset()
	return readTersely(b.ReadOnlyData(), answer)
}

// done answers for every transaction within another that was done.
var done = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: &pb.TxnResponse{Succeeded: true}}}

// readTersely reads the answer to a transaction. It keeps nothing of b.
func readTersely(b []byte, answer *pb.TxnResponse) error {
	for len(b) > 0 {
		f, err := nextField(&b)
		if err != nil {
			return err
		}
		switch f.number {
		case txnHeader:
			answer.Header = &pb.ResponseHeader{}
			err = pbv2.Unmarshal(f.bytes, answer.Header)
		case txnSucceeded:
			answer.Succeeded = f.varint != 0
		case txnResponses:
			op := done
			if !isDone(f.bytes) {
				op = &pb.ResponseOp{}
				err = pbv2.Unmarshal(f.bytes, op)
			}
			answer.Responses = append(answer.Responses, op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isDone says whether b is the answer to a transaction that was done.
func isDone(b []byte) bool {
	op, err := nextField(&b)
	if err != nil || op.number != opTxn || len(b) > 0 {
		return false
	}
	for len(op.bytes) > 0 {
		f, err := nextField(&op.bytes)
		if err != nil {
			return false
		}
		if f.number == txnSucceeded {
			return f.varint != 0
		}
	}
	return false
}

// A field is one of a message: a number or some bytes.
type field struct {
	number protowire.Number
	varint uint64
	bytes  []byte
}

// nextField takes the first field from b.
func nextField(b *[]byte) (f field, err error) {
	number, kind, n := protowire.ConsumeTag(*b)
	if n < 0 {
		return f, fmt.Errorf("what etcd answers cannot be read: %w", protowire.ParseError(n))
	}
	f.number, *b = number, (*b)[n:]
	switch kind {
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(*b)
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(*b)
	default:
		n = protowire.ConsumeFieldValue(number, kind, *b)
	}
	if n < 0 {
		return f, fmt.Errorf("what etcd answers cannot be read: %w", protowire.ParseError(n))
	}
	*b = (*b)[n:]
	return f, nil
}

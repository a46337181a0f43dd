package etcd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	pbv2 "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func answeredPut() *pb.ResponseOp {
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{Header: &pb.ResponseHeader{Revision: 7}}}}
}

func answeredDelete() *pb.ResponseOp {
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{Header: &pb.ResponseHeader{Revision: 7}, Deleted: 1}}}
}

func answeredTxn(done bool, all ...*pb.ResponseOp) *pb.ResponseOp {
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 7}, Succeeded: done, Responses: all}}}
}

func answeredRange(keys ...string) *pb.ResponseOp {
	r := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 7}, Count: int64(len(keys))}
	for _, k := range keys {
		r.Kvs = append(r.Kvs, &mvccpb.KeyValue{Key: []byte(k), ModRevision: 5, Version: 1})
	}
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: r}}
}

// answers are what etcd may say, by name.
func answers() map[string]*pb.TxnResponse {
	head := &pb.ResponseHeader{ClusterId: 1 << 63, MemberId: 2, Revision: 7, RaftTerm: 3}
	return map[string]*pb.TxnResponse{
		"nothing":                     {},
		"that one was done":           {Header: head, Succeeded: true, Responses: []*pb.ResponseOp{answeredPut(), answeredPut()}},
		"that one was removed":        {Header: head, Succeeded: true, Responses: []*pb.ResponseOp{answeredDelete(), answeredPut()}},
		"that one was not":            {Header: head, Responses: []*pb.ResponseOp{answeredRange("a"), answeredRange()}},
		"that of two one was done":    {Header: head, Succeeded: true, Responses: []*pb.ResponseOp{answeredTxn(true, answeredPut()), answeredTxn(false, answeredRange("a", "b"))}},
		"that two were done":          {Header: head, Succeeded: true, Responses: []*pb.ResponseOp{answeredTxn(true, answeredPut()), answeredTxn(true, answeredPut(), answeredPut())}},
		"that one was, without doing": {Header: head, Succeeded: true, Responses: []*pb.ResponseOp{answeredTxn(true), answeredTxn(false)}},
	}
}

// readAnswer reads what etcd answers as a call does.
func readAnswer(b []byte) (*pb.TxnResponse, error) {
	a := &pb.TxnResponse{Responses: []*pb.ResponseOp{done}} // of a call before
	err := terse{encoding.GetCodecV2(proto.Name)}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, a)
	return a, err
}

func TestAnswersAreReadAsTheyAreButForWhatWasDone(t *testing.T) {
	for name, said := range answers() {
		t.Run(name, func(t *testing.T) {
			b, err := pbv2.Marshal(said)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAnswer(b)
			if err != nil {
				t.Fatal(err)
			}
			for i, op := range said.Responses {
				if op.GetResponseTxn().GetSucceeded() {
					said.Responses[i] = done
				}
			}
			if !pbv2.Equal(got, said) {
				t.Errorf("it is read as %v, want %v", got, said)
			}
		})
	}
}

func TestABrokenAnswerIsRefused(t *testing.T) {
	seed := rand.Uint64()
	chance := rand.New(rand.NewPCG(seed, 0))
	for name, said := range answers() {
		b, err := pbv2.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		for at := range b {
			bad := append([]byte(nil), b...)
			bad[at] ^= byte(1 + chance.IntN(255))
			readAnswer(bad)    // may be another answer, and must not panic
			readAnswer(b[:at]) // the same
		}
		for _, bad := range [][]byte{{0xff}, {0x0a, 0x05, 1}, {0x1a, 0x02, 0x22}, {0x1a, 0x03, 0x22, 0x01, 0xff}, {0x10}} {
			if got, err := readAnswer(append(append([]byte(nil), b...), bad...)); err == nil {
				t.Errorf("%s: % x behind it is read as %v (seed %d)", name, bad, got, seed)
			}
		}
	}
}

func TestTheNumbersOfFieldsAreEtcds(t *testing.T) {
	txn, op := (&pb.TxnResponse{}).ProtoReflect().Descriptor(), (&pb.ResponseOp{}).ProtoReflect().Descriptor()
	for _, c := range []struct {
		of     protoreflect.MessageDescriptor
		name   protoreflect.Name
		number protowire.Number
	}{{txn, "header", txnHeader}, {txn, "succeeded", txnSucceeded}, {txn, "responses", txnResponses}, {op, "response_txn", opTxn}} {
		if f := c.of.Fields().ByName(c.name); f == nil || f.Number() != c.number {
			t.Error(fmt.Sprint(c.of.Name(), ".", c.name), "has another number than", c.number)
		}
	}
	if known := txn.Fields().Len(); known != 3 {
		t.Errorf("etcd says %d things of a transaction, and three are read", known)
	}
}

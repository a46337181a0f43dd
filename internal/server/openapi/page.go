package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"fmt"
	"sync"
	"sync/atomic"
)

// A page is one document in the forms that clients ask for. Each form is made when it is first
// asked for, and kept.
type page struct {
	json   func() (*form, error)
	binary func() (*form, error) // nil if there is no protobuf

	asked, askedBinary atomic.Bool // whether somebody wanted it, or what it took the place of
}

// take returns a form for who asks for it.
func (p *page) take(binary bool) (*form, error) {
	if binary {
		p.askedBinary.Store(true)
		return p.binary()
	}
	p.asked.Store(true)
	return p.json()
}

// after makes p the page that takes the place of last.
func (p *page) after(last *page) {
	p.asked.Store(last.asked.Load())
	p.askedBinary.Store(last.askedBinary.Load())
}

// make makes the forms that somebody wanted. What is wrong with one is told to who asks for it.
func (p *page) make() {
	if p.asked.Load() {
		_, _ = p.json()
	}
	if p.askedBinary.Load() {
		_, _ = p.binary()
	}
}

// A form is what is sent. The hash is that of the JSON, whatever the form: it names the content
// (rule H42), and Vary keeps the forms apart.
type form struct {
	body   []byte
	hash   string
	zipped func() []byte
}

func newPage(text func() ([]byte, error), binary func(text []byte) ([]byte, error)) *page {
	p := &page{}
	p.json = sync.OnceValues(func() (*form, error) {
		body, err := text()
		if err != nil {
			return nil, err
		}
		return newForm(body, fmt.Sprintf("%X", sha512.Sum512(body))), nil
	})
	if binary != nil {
		p.binary = sync.OnceValues(func() (*form, error) {
			from, err := p.json()
			if err != nil {
				return nil, err
			}
			body, err := binary(from.body)
			if err != nil {
				return nil, fmt.Errorf("openapi: as protobuf: %w", err)
			}
			return newForm(body, from.hash), nil
		})
	}
	return p
}

func newForm(body []byte, hash string) *form {
	return &form{body: body, hash: hash, zipped: sync.OnceValue(func() []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write(body) // a buffer takes everything
		w.Close()
		return out.Bytes()
	})}
}

package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// watchTimeout is how long a watch waits for events if it does not say.
const watchTimeout = 10 * time.Second

// errStopped says that a step in a watch ended the conversation and has said why.
var errStopped = errors.New("a step ended the conversation")

// watch opens a watch, runs the steps that belong in it, and collects its events.
func (r *run) watch(ctx context.Context, number string, w *Watch) (*answer, error) {
	sent, err := prepare(&Request{Method: http.MethodGet, Path: w.Path, Headers: w.Headers, As: w.As}, r.vars)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := r.client.open(ctx, sent)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	records := read(ctx, response)
	if !r.steps(ctx, number+".", w.While) {
		return nil, errStopped
	}
	if response.StatusCode != http.StatusOK {
		return refusal(ctx, w, response, records)
	}
	got := &answer{status: response.StatusCode, header: response.Header, stream: true}
	got.collect(ctx, w, records)
	return got, ctx.Err()
}

// A record is one piece of a stream: an event, the text of a refusal, or its end.
type record struct {
	event event
	text  []byte
	end   error // io.EOF: the server ended the stream
}

// read reads a stream until it ends or ctx does.
func read(ctx context.Context, response *http.Response) <-chan record {
	records := make(chan record)
	next := events(response.Body)
	if response.StatusCode != http.StatusOK {
		next = whole(response.Body)
	}
	go func() {
		for {
			rec := next()
			select {
			case records <- rec:
			case <-ctx.Done():
				return
			}
			if rec.end != nil {
				return
			}
		}
	}()
	return records
}

func events(from io.Reader) func() record {
	d := json.NewDecoder(from)
	d.UseNumber()
	return func() record {
		var e struct {
			Type   string `json:"type"`
			Object any    `json:"object"`
		}
		if err := d.Decode(&e); err != nil {
			return record{end: err}
		}
		return record{event: event{e.Type, e.Object}}
	}
}

// whole gives everything as one record, which is also the end.
func whole(from io.Reader) func() record {
	return func() record {
		text, err := io.ReadAll(from)
		if err == nil {
			err = io.EOF
		}
		return record{text: text, end: err}
	}
}

func (w *Watch) timeout() time.Duration {
	if w.Timeout == 0 {
		return watchTimeout
	}
	return w.Timeout
}

// collect takes events until there are enough and the time to linger is over, the
// stream ends, or the time is over.
func (a *answer) collect(ctx context.Context, w *Watch, records <-chan record) {
	over := time.After(w.timeout())
	for {
		if w.Events > 0 && len(a.events) == w.Events {
			if w.Linger == 0 {
				return
			}
			over = time.After(w.Linger)
		}
		select {
		case rec := <-records:
			switch rec.end {
			case nil:
				a.events = append(a.events, rec.event)
				continue
			case io.EOF:
				a.closed = true
			default:
				a.broken = rec.end
			}
			return
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// refusal is the answer of a watch that was not opened.
func refusal(ctx context.Context, w *Watch, response *http.Response, records <-chan record) (*answer, error) {
	select {
	case rec := <-records:
		if rec.end != io.EOF {
			return nil, rec.end
		}
		body := decodeBody(response.Header.Get("Content-Type"), rec.text)
		return &answer{status: response.StatusCode, header: response.Header, body: body}, nil
	case <-time.After(w.timeout()):
		return nil, errors.New("the answer to a refused watch did not end")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

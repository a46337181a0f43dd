package etcd

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between somebody and a member, and can be cut.
type Proxy struct {
	URL string // that stands for the member's

	listener net.Listener

	mu    sync.Mutex // guards what follows
	to    string
	open  *sync.Cond
	cut   bool
	delay time.Duration
	ended bool
	conns map[net.Conn]struct{}
}

// NewProxy starts a proxy of a member, which ends with the test.
func NewProxy(t testing.TB, m *Member) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme, _, _ := strings.Cut(m.URL, "://")
	p := &Proxy{URL: scheme + "://" + l.Addr().String(), to: hostOf(m), listener: l, conns: map[net.Conn]struct{}{}}
	p.open = sync.NewCond(&p.mu)
	go p.serve()
	t.Cleanup(p.end)
	return p
}

func (p *Proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			p.pass()
			far, err := net.Dial("tcp", p.target())
			if err != nil {
				return
			}
			defer far.Close()
			p.keep(near, far)
			defer p.forget(near, far)
			go p.copy(far, near, func() {})
			p.copy(near, far, p.wait)
		}()
	}
}

func hostOf(m *Member) string {
	_, host, _ := strings.Cut(m.URL, "://")
	return host
}

func (p *Proxy) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to
}

// Turn has the connections that are made from now on end at another member.
func (p *Proxy) Turn(m *Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = hostOf(m)
}

// copy carries what comes from one side to the other, and holds it back while the proxy is cut. Before it carries
// something it waits.
func (p *Proxy) copy(to, from net.Conn, wait func()) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			wait()
			p.pass()
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Delay makes everything that the member says late by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) wait() {
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	if d > 0 {
		<-time.After(d)
	}
}

// pass returns once the proxy is not cut.
func (p *Proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut && !p.ended {
		p.open.Wait()
	}
}

func (p *Proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// Cut lets nothing through any more, and says nothing of it, as a cable does that is pulled.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

// Break ends the connections that there are. What is held back is lost.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Heal lets everything through again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	p.open.Broadcast()
}

func (p *Proxy) end() {
	p.listener.Close()
	p.Break()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.open.Broadcast()
}

package pawl_test

import (
	"net/http"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/internal/conversation"
	"github.com/pawl-dev/pawl/pawltest"
)

// TestConversations replays what clients and a reference server said to each other. Those
// that do not pass yet are listed in pending.txt, which only shrinks: one that is listed and
// passes fails this test, and PAWL_CONVERSATIONS_PRUNE=1 strikes it off.
func TestConversations(t *testing.T) {
	const file = "internal/conversation/testdata/pending.txt"
	server := pawltest.Start(t, pawl.Config{})
	if err := server.Compact(t.Context()); err != nil { // some ask for version 1, and expect it to be gone
		t.Fatal(err)
	}
	config := server.RESTConfig()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	pending, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	client := &conversation.Client{BaseURL: config.Host, HTTP: &http.Client{Transport: transport}, Token: config.BearerToken}
	passed := conversation.RunAll(t, client, conversation.ParsePending(string(pending)))
	if os.Getenv("PAWL_CONVERSATIONS_PRUNE") == "1" {
		if err := os.WriteFile(file, []byte(conversation.PrunePending(string(pending), passed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

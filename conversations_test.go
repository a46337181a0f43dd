package pawl_test

import (
	"net/http"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/internal/conversation"
	"github.com/pawl-dev/pawl/pawltest"
)

// TestConversations replays what clients and a reference server said to each other. Those
// that do not pass yet are listed in pending.txt, which only shrinks.
func TestConversations(t *testing.T) {
	config := pawltest.New(t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := os.ReadFile("internal/conversation/testdata/pending.txt")
	if err != nil {
		t.Fatal(err)
	}
	client := &conversation.Client{BaseURL: config.Host, HTTP: &http.Client{Transport: transport}, Token: config.BearerToken}
	conversation.RunAll(t, client, conversation.ParsePending(string(pending)))
}

package conversation_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"testing"

	"github.com/pawl-dev/pawl/internal/conversation"
)

// pendingFile lists the conversations that do not pass yet. It may only shrink.
const pendingFile = "testdata/pending.txt"

// TestConversations replays all conversations against the server that
// PAWL_CONVERSATIONS_URL names, as the administrator whose bearer token is
// PAWL_CONVERSATIONS_TOKEN. The server's certificate is checked against the file
// PAWL_CONVERSATIONS_CA, or not at all with PAWL_CONVERSATIONS_INSECURE=1. With
// PAWL_CONVERSATIONS_PRUNE=1 those that pass are struck off pending.txt.
//
//	go test ./internal/conversation -run 'TestConversations/create/creating_a_configmap' -v
func TestConversations(t *testing.T) {
	url := os.Getenv("PAWL_CONVERSATIONS_URL")
	if url == "" {
		t.Skip("PAWL_CONVERSATIONS_URL names no server to replay the conversations against")
	}
	list, err := os.ReadFile(pendingFile)
	if err != nil {
		t.Fatal(err)
	}
	client := &conversation.Client{
		BaseURL: url,
		Token:   os.Getenv("PAWL_CONVERSATIONS_TOKEN"),
		HTTP:    &http.Client{Transport: transport(t)},
	}
	passed := conversation.RunAll(t, client, conversation.ParsePending(string(list)))
	if os.Getenv("PAWL_CONVERSATIONS_PRUNE") == "1" {
		prune(t, string(list), passed)
	}
}

// prune strikes those that pass off the list. Nothing is ever added to it.
func prune(t *testing.T, list string, passed []string) {
	pruned := conversation.PrunePending(list, passed)
	if pruned == list {
		return
	}
	if err := os.WriteFile(pendingFile, []byte(pruned), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has been pruned: run the test again, and read the diff", pendingFile)
}

func transport(t *testing.T) *http.Transport {
	tr := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: os.Getenv("PAWL_CONVERSATIONS_INSECURE") == "1"},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
	}
	t.Cleanup(tr.CloseIdleConnections)
	file := os.Getenv("PAWL_CONVERSATIONS_CA")
	if file == "" {
		return tr
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tr.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !tr.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
		t.Fatalf("%s holds no certificate", file)
	}
	return tr
}

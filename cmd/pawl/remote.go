package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A remote is a server that runs.
type remote struct {
	host   string
	client *http.Client
}

// connect reads how to reach the server behind a kubeconfig.
func (p process) connect(at place) (*remote, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: at.kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: at.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.kubeconfig, err)
	}
	config.UserAgent = "pawl/" + p.release().Version
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.kubeconfig, err)
	}
	return &remote{strings.TrimSuffix(config.Host, "/"), client}, nil
}

// answerMax is how much of an answer that is not as hoped is read.
const answerMax = 64 << 10

// do sends a request, and returns the body of an answer that is as hoped.
func (r *remote) do(ctx context.Context, method, path string, query url.Values) (io.ReadCloser, error) {
	at := r.host + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil, &usageError{fmt.Sprintf("nobody answers at %s", r.host), "start the server, or name the data folder with --data if it is meant to be stopped"}
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		return nil, fmt.Errorf("%s answers %s: %w", r.host, resp.Status, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, &usageError{fmt.Sprintf("%s does not know %s", r.host, path), "see that --kubeconfig and --context name a pawl, and not one older than this"}
	}
	return nil, fmt.Errorf("%s answers %s: %s", r.host, resp.Status, message(text))
}

// message returns what an answer says, which may be in a Status.
func message(text []byte) string {
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(string(text))
}

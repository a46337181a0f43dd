package conversation

import (
	"errors"
	"net/http"
	"regexp"
	"testing"
)

// unreachable is a server that cannot be reached.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// Against a server that is not there no conversation passes, and a list that says
// so is content.
func TestRunAllAgainstAServerThatIsNotThere(t *testing.T) {
	var pending []string
	for _, c := range load(t) {
		pending = append(pending, c.ID())
	}
	client := &Client{BaseURL: "http://x", HTTP: &http.Client{Transport: unreachable{}}}
	if passed := RunAll(t, client, pending); len(passed) != 0 {
		t.Errorf("%q passed", passed)
	}
}

func TestTheListOfPendingConversationsOnlyShrinks(t *testing.T) {
	const list = "# why\n\na/one\na/two\n  b/three\n"
	if got := ParsePending(list); len(got) != 3 || got[2] != "b/three" {
		t.Errorf("read %q", got)
	}
	const want = "# why\n\na/two\n"
	if got := PrunePending(list, []string{"a/one", "b/three", "c/four"}); got != want {
		t.Errorf("pruned to %q, want %q", got, want)
	}
}

func TestATokenIsEightLowerCaseCharactersAndTheFirstALetter(t *testing.T) {
	if token := NewToken(); !regexp.MustCompile(`^[a-z][a-z0-9]{7}$`).MatchString(token) {
		t.Errorf("%q", token)
	}
}

package discovery

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
)

// An encoding is how a document is written.
type encoding string

const (
	asJSON     encoding = "application/json"
	asYAML     encoding = "application/yaml"
	asProtobuf encoding = "application/vnd.kubernetes.protobuf"
)

// encodings in the order in which a wildcard finds them.
var encodings = []encoding{asJSON, asYAML, asProtobuf}

// aggregatedForm are the parameters of an Accept clause that ask for the aggregated form (rule
// H22), and of the Content-Type that answers, where client-go wants all three (rule H23).
const aggregatedForm = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// A choice is what an Accept header comes to.
type choice uint8

const (
	plain    choice = 1 + iota // the legacy document
	whole                      // the aggregated document
	noForm                     // an encoding is known, but no form that was asked for in it
	noMatter                   // no encoding is known
)

// choose decides which document is sent, and how it is encoded. Only some paths have an
// aggregated form. A clause for the aggregated form counts before all others, as it
// does for the reference, so that a client need not know the order.
func choose(accept string, hasWhole bool) (choice, encoding) {
	if accept == "" {
		return plain, asJSON
	}
	clauses := slices.DeleteFunc(goautoneg.ParseAccept(accept), func(c goautoneg.Accept) bool { return c.Q <= 0 })
	verdict := noMatter
	var first encoding
	for _, clause := range clauses {
		as, known := encodingOf(clause)
		switch form := formOf(clause.Params); {
		case !known:
		case form == whole && hasWhole:
			return whole, as
		case form == plain && verdict != plain:
			verdict, first = plain, as
		case verdict == noMatter:
			verdict = noForm
		}
	}
	return verdict, first
}

func encodingOf(clause goautoneg.Accept) (encoding, bool) {
	for _, e := range encodings {
		kind, sub, _ := strings.Cut(string(e), "/")
		if (clause.Type == "*" || clause.Type == kind) && (clause.SubType == "*" || clause.SubType == sub) {
			return e, true
		}
	}
	return "", false
}

// formOf says which form the parameters of a clause ask for: noForm if it is one that
// is not offered, such as an older version (rule H28).
func formOf(params map[string]string) choice {
	_, as := params["as"]
	_, g := params["g"]
	_, v := params["v"]
	switch {
	case !as && !g && !v:
		return plain
	case params["as"] == "APIGroupDiscoveryList" && params["g"] == "apidiscovery.k8s.io" && params["v"] == "v2":
		return whole
	}
	return noForm
}

// pretty says whether JSON is indented (rule H59).
func pretty(r *http.Request) bool {
	if asked := r.URL.Query().Get("pretty"); asked != "" {
		yes, _ := strconv.ParseBool(asked)
		return yes
	}
	for _, clause := range goautoneg.ParseAccept(r.Header.Get("Accept")) {
		if clause.Params["pretty"] == "1" {
			return true
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

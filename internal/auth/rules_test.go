package auth

import (
	"strings"
	"testing"
)

// TestWhatIsListedIsAllowed asks for everything that the list promises (rule H205).
func TestWhatIsListedIsAllowed(t *testing.T) {
	for _, who := range []User{
		somebody("root", "system:masters", "system:authenticated"), somebody("ann", "crew", "system:authenticated"), somebody("x"), anonymous,
	} {
		t.Run(who.GetName(), func(t *testing.T) {
			rules := Masters{}.Rules(who, "default")
			if rules.Incomplete || rules.EvaluationError != "" {
				t.Errorf("something is missing: %+v", rules)
			}
			for _, r := range rules.ResourceRules {
				for _, verb := range r.Verbs {
					for _, group := range r.APIGroups {
						for _, plural := range r.Resources {
							expectAllowed(t, Attributes{User: who, Verb: verb, IsResource: true, Group: group, Resource: plural})
						}
					}
				}
			}
			for _, r := range rules.NonResourceRules {
				for _, verb := range r.Verbs {
					for _, url := range r.NonResourceURLs {
						expectAllowed(t, Attributes{User: who, Verb: verb, Path: strings.Replace(url, "/*", "/x", 1)})
					}
				}
			}
		})
	}
}

func expectAllowed(t *testing.T, a Attributes) {
	t.Helper()
	if ok, why := (Masters{}).Authorize(a); !ok {
		t.Errorf("%s %s%s.%s is listed and refused: %s", a.Verb, a.Path, a.Resource, a.Group, why)
	}
}

func TestEverybodyWhoIsKnownMayAskAboutThemselves(t *testing.T) {
	ann := somebody("ann", "system:authenticated")
	for _, tt := range []struct {
		name string
		a    Attributes
		want bool
	}{
		{"who am I", Attributes{User: ann, Verb: "create", Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, true},
		{"may I", Attributes{User: ann, Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}, true},
		{"what may I", Attributes{User: ann, Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}, true},
		{"may somebody else", Attributes{User: ann, Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, false},
		{"who holds this token", Attributes{User: ann, Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, false},
		{"another verb is another matter", Attributes{User: ann, Verb: "list", Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, false},
		{"another group is another resource", Attributes{User: ann, Verb: "create", Group: "test.example", Resource: "selfsubjectreviews"}, false},
		{"whom nobody knows may not", Attributes{User: anonymous, Verb: "create", Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.IsResource = true
			if got, _ := (Masters{}).Authorize(tt.a); got != tt.want {
				t.Errorf("allowed: %v, want %v", got, tt.want)
			}
		})
	}
}

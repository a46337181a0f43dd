package conversation

import "testing"

func TestReplacements(t *testing.T) {
	v := vars{"unique": "k3x9w2ab", "rv": "41", "name": "a"}
	for _, c := range []struct{ name, text, want string }{
		{"the token", "p-${unique}/${unique}", "p-k3x9w2ab/k3x9w2ab"},
		{"what was captured", "rv=${rv}", "rv=41"},
		{"a text many times", "[${repeat ab 3}]", "[ababab]"},
		{"a text with escapes many times", "${repeat %7B%7D, 2}{}", "{},{},{}"},
		{"a number plus another", "${add rv 1000}", "1041"},
		{"a dollar alone stays", "$5 {x}", "$5 {x}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := v.replace(c.text)
			if err != nil || got != c.want {
				t.Errorf("%q became %q, %v; want %q", c.text, got, err, c.want)
			}
		})
	}
	for _, text := range []string{"${unknown}", "${open", "${repeat x}", "${repeat x y}", "${add rv}", "${add name 1}", "${add nothing 1}"} {
		if got, err := v.replace(text); err == nil {
			t.Errorf("%q became %q, want an error", text, got)
		}
	}
}
